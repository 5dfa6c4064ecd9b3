#pragma once

#include <zkasio/detail/seam/request.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zkasio::detail {

/// The ephemeral nodes of a session, in bytes of their paths. All of them are removed by one transaction, closeSession,
/// which lists their paths: above jute.maxbuffer + 1 MiB no server can read that transaction back, and the ensemble is
/// lost. Pure bookkeeping, on the strand; the caller sends the requests.
///
/// A node counts from the moment its create waits to be sent until its removal is answered, or until any answer or
/// event says that the node is gone. A node of a create or a removal whose outcome is unknown counts until an answer
/// tells, which the next connection asks for. Nobody need tell of a node that another client has removed, or whether a
/// sequential create was applied: the servers are asked when the budget gets short. See questions().
///
/// A contender of a lock needs its node only to wait in the queue of the lock. Contenders behind another one of this
/// session that waits in the same directory leave a quarter of the budget to all other nodes: so a session whose
/// contenders fill the rest can still take other locks, write with receipts, and enter groups.
class ephemeral_budget {
public:
    /// What is logged once, and how much has to go before it is logged again.
    static constexpr std::size_t worth_a_warning = 256 * 1024;

    /// @param chroot_length the length in bytes of the chroot, which the server puts in front of each path.
    /// @param resumed the first session may have nodes of an earlier process, which are not known here.
    ephemeral_budget(std::size_t bytes, std::size_t chroot_length, bool resumed)
        : given_(bytes),
          chroot_length_(chroot_length),
          limit_(resumed ? bytes / 4 : bytes),
          short_from_(next_short()) {}

    struct usage {  // of a directory
        std::size_t nodes = 0;    // also those of creates under way
        std::size_t waiting = 0;  // of contenders without the lock
        std::size_t held = 0;
    };
    struct text_hash {
        using is_transparent = void;
        // Not noexcept: libstdc++ then keeps the hash of each path beside it.
        std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
    };
    template <class T>
    using by_path = std::unordered_map<std::string, T, text_hash, std::equal_to<>>;
    using directory = by_path<usage>::value_type;

    /// What a request may create, until it has ended.
    struct share {
        std::size_t bytes = 0;
        directory* in = nullptr;  ///< of its only create
        std::uint64_t epoch = 0;
    };
    /// A request is about to be queued. Counts the nodes that it may create; false: there is no room, also with what
    /// the request removes. @param waits by a contender of a lock.
    bool begin(const request& r, bool waits, share& its);
    /// The step of a transaction that begin() has refused whose node does not fit: the nodes before it do.
    std::size_t step_without_room(const multi_request& m) const;
    /// For requests that create paths of so many bytes, with the chroot.
    bool has_room_for(std::size_t bytes) const noexcept { return used_ < limit_ && bytes <= limit_ - used_; }
    /// The request of begin() has ended. @param again it will be sent once more, and end once more.
    void end(const request& r, bool waits, share& its, const reply& answer, bool again);
    /// What was lost is searched for behind a sync() on the new connection.
    void connected(std::int64_t session) noexcept {
        session_ = session;
        synced_ = false;
    }
    /// What to ask the servers, in this order, about nodes that may not exist. Empty if there is nothing to ask.
    std::list<request> questions() const;
    /// Half of the budget is used; then half of what was left, until it is less than an eighth.
    bool is_short() const noexcept { return used_ >= short_from_; }
    /// Which nodes exist is to be asked, of those that are held, and of sequential ones whose creates were lost: some
    /// three times for each node while a session fills its budget.
    void doubt_held();
    bool is_in_doubt(const std::string& path) const { return doubtful_.contains(path); }
    /// A watch, or a listing, tells that the node was removed.
    void heard_gone(std::string_view path);
    /// Whether this process has made the ephemeral node in this session, or may have.
    bool may_have_made(std::string_view path) const;

    // --------------------------------------------------------------------------------------- contenders of a lock
    enum class room {
        now,
        later,
        never,  ///< all that fills the budget is held, or waits behind what is held
    };
    /// @param path_bytes without a sequence number.
    room for_contender(const std::string& directory, std::size_t path_bytes) const;
    /// Calls `f` once, when for_contender() says something else.
    void when_changed(std::string directory, std::size_t path_bytes, std::function<void()> f);
    /// How many nodes of so many bytes fit into a directory whose nodes this process gives back one after another, such
    /// as the claims of a queue. Nodes behind the first one have half of the budget, so that those who hold them find
    /// room for locks and receipts; directories that ask before the others have used theirs may have more. 0: one of
    /// those nodes, or another one, will make room. 1 also where there is none, and none will come: the create is
    /// refused.
    std::size_t for_claims(const std::string& directory, std::size_t path_bytes) const;
    /// Calls `f` once, when some node has gone.
    void when_released(std::function<void()> f) { for_claims_.push_back(std::move(f)); }
    /// The contender with this node has the lock.
    void now_holds(const std::string& path);
    /// Whether call_waiting() has something to do.
    bool has_news() const noexcept { return has_news_ && (!waiting_.empty() || !for_claims_.empty()); }
    void call_waiting();

    /// The session is over. Shares of before are not given back with end().
    void clear();

    std::size_t bytes() const noexcept { return used_; }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t nodes() const noexcept { return nodes_.size(); }
    /// True once each time the bytes rise above worth_a_warning.
    bool take_warning() noexcept;

private:
    std::size_t cost_of(std::size_t path_bytes) const noexcept { return path_bytes + chroot_length_ + 4; }
    std::size_t cost_of_creates(const request& r) const;
    std::size_t cost_of_removals(const request& r) const;
    bool has_room(const request& r, std::size_t bytes_of_creates) const;
    bool some_may_leave(bool is_first) const noexcept;
    directory& directory_of(const std::string& path);
    template <class F>
    void change(directory& in, F f);
    enum class use {
        waits,  // of a contender without the lock
        held,
        leaves  // its removal was asked for
    };
    struct node {
        use of = use::held;
        directory* in = nullptr;
    };
    bool is_used(const std::string& name) const;
    bool others_wait(const std::string& name) const;
    void exists(const std::string& path, directory& in, use of);
    void count(usage& in, use of, int more);
    void turn(node& n, use into);
    void doubt(const std::string& path);
    void made_or_not(const create_request& c, directory& in, const std::string& made, bool waits, const reply& a);
    void removed_or_not(const std::string& path, const reply& a, bool again);
    void found_or_not(std::string_view path, const reply& a);
    void gone(std::string_view path);
    void listed(const std::string& parent, const std::vector<std::string>& names);
    void release(std::size_t bytes) noexcept;
    std::size_t next_short() const noexcept;

    const std::size_t given_, chroot_length_;
    std::size_t limit_;  // of this session
    std::size_t used_ = 0;
    std::size_t short_from_;  // next_short() when least was used since doubt_held()
    by_path<node> nodes_;
    std::multimap<std::string, use> maybe_made_;  // sequential creates of unknown outcome, by path
    std::set<std::string, std::less<>> doubtful_;
    std::set<std::string> to_list_;  // directories in which sequential creates were lost
    by_path<usage> directories_;  // also those that have lost their last node: mostly they get another one soon
    std::size_t swept_ = 0;       // how many there were after the last removal of unused ones
    std::size_t waiting_nodes_ = 0, leaving_nodes_ = 0;
    std::size_t contenders_under_way_ = 0;  // also those of maybe_made_
    std::size_t moving_ = 0;  // directories with waiting contenders none of which waits for this session
    struct waiter {
        std::size_t path_bytes = 0;
        std::uint64_t ticket = 0;
        std::function<void()> call;
    };
    std::map<std::string, std::deque<waiter>> waiting_;  // by directory: locks of several kinds may be at one path
    // The directories of waiting_, each once, by the ticket of its first waiter: those where none of ours
    // waits with a node, and the others.
    std::map<std::uint64_t, std::string> first_, behind_;
    std::uint64_t last_ticket_ = 0;
    std::vector<std::function<void()>> for_claims_;  // of when_released()
    std::int64_t session_ = 0;
    std::uint64_t epoch_ = 1;
    bool synced_ = false, has_news_ = false, warned_ = false;
};

}  // namespace zkasio::detail
