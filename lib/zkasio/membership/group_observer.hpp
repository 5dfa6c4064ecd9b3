#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/group_options.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// A member of a group.
struct member_info {
    std::string id;
    std::string data;  ///< none in the parties of kazoo, see has_member_data()
    std::string path;  ///< the member's node

    friend bool operator==(const member_info&, const member_info&) = default;
};

/// The members of a group, as a client knows them.
struct ZKASIO_EXPORT group_view {
    /// Sorted by id. In the parties of kazoo, several members may have the same id.
    std::vector<member_info> members;
    /// False: there is no connection, or not every node was read again since there is one. Then the view is what was
    /// known last.
    bool current = false;
    /// False: the directory exists, but its ACL does not let this client list it. Then `members` is empty.
    bool readable = true;

    /// The first member with this id; null when there is none.
    const member_info* find(std::string_view id) const noexcept;
    bool contains(std::string_view id) const noexcept { return find(id) != nullptr; }

    friend bool operator==(const group_view&, const group_view&) = default;
};

/// Follows the members of a group, on a children_cache: what children_cache says of sessions, lifetimes and watches
/// applies here.
///
/// *Lifetime*: move-only; ends when destroyed. A call that is still awaited then fails with errc::client_closed.
class ZKASIO_EXPORT group_observer {
public:
    /// As group::observe(). Throws errc::invalid_path.
    group_observer(client zk, std::string path, group_names names = group_names::curator);
    group_observer(group_observer&&) noexcept = default;
    group_observer& operator=(group_observer&&) noexcept = default;

    /// *Completes when* the members were read once; also when there is no group.
    /// *Fails with* what cache::ready() fails with.
    asio::awaitable<void> ready() const;

    /// The members known at this moment; none, and not current, before ready(). On any thread. A moved-from observer
    /// shows no members.
    group_view members() const;

    /// *Completes when* the view differs from the last one that next() has returned, with the newest view; the first
    /// time when the observer is ready(). If the view is no longer current, this is such a change, too.
    /// *Fails with* what cache_changes::next() fails with; errc::invalid_argument when another coroutine awaits next().
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<group_view> next() const;

    /// As next(), but completes when the members have not changed for the time `quiet`, or `at_most` after the first
    /// change: many members that start are one change. If the members have become what they were before, the view may
    /// equal the last one. A view that is not current is told when there was no connection for `quiet`; a connection
    /// that is back, with the same members, begins nothing anew.
    /// *Fails with* what next() fails with; errc::invalid_argument for a negative time.
    asio::awaitable<group_view> settled(any_duration quiet,
                                        any_duration at_most = std::chrono::nanoseconds::max()) const;

private:
    struct reader;
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio
