#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The decisions of a member of a double barrier. Pure: nothing here sends a request.
///
/// A round of a double barrier begins when its members create `<path>/ready` and ends with its last member. Rules:
///
///   B1  A node `ready` that is younger than the member's own node proves that enough members stood at the same time,
///       this one among them or about to be. So does the server's report that `ready` was created. The member passes,
///       even if `ready` is gone again: kazoo's members remove it as soon as the first of them leaves.
///   B2  A `ready` that is older than the own node belongs to a round that others have begun. The member joins that
///       round while one of its members is there: one whose node is older than `ready`, or one that has joined. If
///       there is none, all of them have been killed: `ready` is left over, and removed. To join is a write to the own
///       node, in one transaction with a check of the other member. So of two members that come after the end of the
///       round, neither takes the other for a member of it; and a round goes on while its processes are restarted one
///       by one.
///   B3  Without `ready`, the members are counted, in a listing that was asked for after the own node was created. Of
///       all members, the one that was created last sees all the others in its listing. So one of them creates `ready`,
///       in one transaction with a check of its own node: as long as that stands, the member has counted itself. If an
///       operator has removed it, the others may be gone as well, and a newcomer would pass alone (B1).
///   B4  `ready` is removed together with the node of the last member, in one transaction. So no member that has not
///       passed yet misses it, and no member of the next round finds it. A member that has seen no `ready`, or another
///       member, does not remove it: both may be of a round that has begun since.
///   B5  Of the members that leave, the lowest keeps its node until it is the last; the others remove theirs first. All
///       libraries agree on this, or at least wait for the lowest. A member waits for those of its round, see B2, and
///       not for one that has come for the next round, which may need this member's process.
///   B6  If only members of kazoo stay behind, `ready` goes with the own node: the lowest member of kazoo waits for the
///       highest child of the directory to go, and counts `ready` as one.
namespace zkasio::barrier_detail {

inline constexpr std::string_view ready_name = "ready";

/// The children of the directory.
struct barrier_children {
    barrier_children() = default;
    explicit barrier_children(std::vector<std::string> names);
    bool has(std::string_view member) const noexcept;

    std::vector<std::string> members;  ///< sorted; all children but `ready`
    bool ready = false;
};

/// Another member's node.
struct other_member {
    std::string name;
    std::int64_t born = 0;  ///< czxid
    bool joined = false;    ///< it has been written: see B2
};

/// All that a member has seen since it began to enter.
struct enter_view {
    std::string own;                          ///< its name
    std::optional<std::int64_t> born;         ///< czxid of its node; nothing: there is none
    bool joined = false;                      ///< an attempt to join has written the node
    std::optional<std::int64_t> ready_since;  ///< czxid of `ready`, read after `born`; nothing: there was none
    bool ready_was_created = false;           ///< a watch has told so that was set when the own node existed
    barrier_children children;                ///< listed after `ready_since` was read
    /// The other members of the listing that were still there when they were read; nothing: not read.
    std::optional<std::vector<other_member>> others;
};

enum class enter_step {
    create_own,
    read_others,  ///< enter_view::others is needed
    pass,
    join,              ///< if member_of_round() is still there, and pass
    create_ready,      ///< and pass
    remove_left_over,  ///< `ready`, if it still is the one of enter_view::ready_since; then look again
    wait,
    refuse,  ///< there are enough members without this one
};

/// @param members how many begin a round. @param exactly no more than these may be inside.
enter_step next_enter_step(const enter_view& seen, std::size_t members, bool exactly);
/// A member of the round of enter_view::ready_since; "": there is none.
std::string member_of_round(const enter_view& seen);

struct leave_step {
    enum class removal {
        nothing,
        own,
        own_and_ready
    };
    removal first = removal::nothing;
    std::string then_wait_for;  ///< a member; "": the member has left
};

/// The members of the round that are there, without the own one: all, if there is no `ready` to tell by.
/// @param others all other members.
std::vector<std::string> members_inside(const std::vector<other_member>& others,
                                        std::optional<std::int64_t> ready_since);

/// @param own the name of the leaving member. @param inside members_inside() when the member began to leave: it waits
/// for these.
leave_step next_leave_step(const barrier_children& now, const std::string& own, const std::vector<std::string>& inside);

}  // namespace zkasio::barrier_detail
