#include <zkasio/membership/persistent_node.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/detail/node_keeper.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace zkasio {

using namespace membership_detail;

std::string_view to_string(persistent_node_state s) noexcept {
    switch (s) {
        case persistent_node_state::creating: return "creating";
        case persistent_node_state::taken: return "taken";
        case persistent_node_state::standing: return "standing";
        case persistent_node_state::ended: return "ended";
    }
    return "unknown";
}

namespace {

using board_ptr = std::shared_ptr<node_board>;
using keeper_ptr = std::shared_ptr<node_keeper>;

session_loop begin_to_keep(const client& zk, keeper_ptr keeper) {
    auto body = [keeper](session on) { return node_keeper::keep(keeper, std::move(on)); };
    auto ended = [keeper](std::exception_ptr why) { keeper->end(why); };
    return run_in_each_session(zk, body, ended);
}

// How many nodes of each client are leaving. Each of them keeps its client open.
class leaving_nodes {
public:
    using client_handle = std::weak_ptr<const void>;  // of client::keep_open()

    explicit leaving_nodes(client_handle of) : of_(std::move(of)) { add(1); }
    leaving_nodes(const leaving_nodes&) = delete;
    leaving_nodes& operator=(const leaving_nodes&) = delete;
    ~leaving_nodes() { add(-1); }

    // Whether no copy of the client is left, and nothing else that keeps the client open.
    bool are_all_that_is_left() const {
        const std::lock_guard lock(mutex());
        return of_.use_count() <= counts()[of_];
    }

private:
    using count_by_client = std::map<client_handle, long, std::owner_less<client_handle>>;
    // Never destroyed: a thread that still runs a client when the program returns from main() may use them after the
    // destructors of statics.
    static std::mutex& mutex() {
        static std::mutex& m = *new std::mutex;
        return m;
    }
    static count_by_client& counts() {
        static count_by_client& all = *new count_by_client;
        return all;
    }
    void add(long n) {
        const std::lock_guard lock(mutex());
        if ((counts()[of_] += n) == 0) counts().erase(of_);
    }

    const client_handle of_;
};

asio::awaitable<void> until_over(const session_loop* loop) {
    try {
        co_await loop->stopped();
    } catch (const error& e) {  // callers of leave() are told, see node_board::until_left()
        if (e.code() == condition::cancelled) throw;
    }
}

// Waits for the end of a loop that leaves. An ephemeral node goes with its session. For any other node, the loop goes
// on until a server is in reach; but if none comes, a client that nobody uses any more must not live for ever.
asio::awaitable<void> until_left_or_given_up(session_loop* loop, node_keeper* keeper,
                                             leaving_nodes::client_handle handle, std::chrono::nanoseconds patience) {
    const leaving_nodes leaving(std::move(handle));
    for (bool over = false; !over;) {
        auto wait = [&] { return until_over(loop); };
        over = co_await run_with_deadline(boot_clock::after(patience), wait);
        const bool is_hopeless = !over && keeper->is_without_session_for(patience) && leaving.are_all_that_is_left();
        if (!is_hopeless) continue;
        keeper->give_up();
        loop->stop();
    }
}

// On the client's strand, as all background work.
asio::awaitable<void> leave_in_background(session_loop loop, keeper_ptr keeper, leaving_nodes::client_handle handle,
                                          std::chrono::nanoseconds patience) {
    if (keeper->is_idle()) loop.stop();
    try {
        co_await until_left_or_given_up(&loop, keeper.get(), std::move(handle), patience);
    } catch (const error&) {  // the client is being closed
    }
}

// The room that a request has for data, besides the ACL and the path with a protected name. The chroot is not counted.
std::size_t room_for_data(const std::string& path, const acl& entries) {
    constexpr std::size_t frame = 128, entry = 12;
    std::size_t others = frame + path.size();
    for (const acl_entry& e : entries) others += entry + e.who().scheme().size() + e.who().id().size();
    return operations::max_request - std::min(others, operations::max_request);
}

board_ptr checked_board(const client& zk, std::string path, bytes data, const persistent_node_options& options) {
    std::string problem = path_problem(path);
    if (problem.empty() && path == "/") problem = "the root stands by itself";
    if (!problem.empty()) throw error(errc::invalid_path, "persistent_node", path, problem);
    const std::size_t largest = room_for_data(path, toolbox(zk).completed(options.acl()));
    try {
        return std::make_shared<node_board>(zk, path, std::move(data).take(), largest);
    } catch (const error&) {
        rethrow_as("persistent_node", path);
    }
}

}  // namespace

/// Keeps the node; leaves when destroyed.
class membership_detail::node_owner {
public:
    node_owner(const client& zk, std::string path, bytes data, persistent_node_options options)
        : board_(checked_board(zk, std::move(path), std::move(data), options)),
          keeper_(std::make_shared<node_keeper>(board_, std::move(options))),
          loop_(begin_to_keep(zk, keeper_)),
          client_(zk.keep_open()),
          patience_(zk.options().connection_timeout()) {}
    node_owner(const node_owner&) = delete;
    node_owner& operator=(const node_owner&) = delete;
    ~node_owner() { leave(); }

    void leave() {
        if (left_.exchange(true)) return;
        board_->ask_to_leave();
        toolbox(board_->events())
            .run_in_background(leave_in_background(std::move(loop_), std::move(keeper_), client_, patience_));
    }

    const board_ptr& board() const noexcept { return board_; }

private:
    const board_ptr board_;
    keeper_ptr keeper_;
    session_loop loop_;
    const leaving_nodes::client_handle client_;
    const std::chrono::nanoseconds patience_;
    std::atomic<bool> left_{false};
};

namespace {

using owner_ptr = std::shared_ptr<node_owner>;

// Null for a persistent_node that was moved from.
board_ptr board_of(const owner_ptr& owner) { return owner ? owner->board() : nullptr; }

const board_ptr& require_valid(const board_ptr& board) {
    if (!board) throw error(errc::invalid_argument, "persistent_node", {}, "this node was moved from");
    return board;
}

// These coroutines hold the board: they may be awaited when the persistent_node is gone.
asio::awaitable<std::string> created_at(board_ptr board) {
    co_return co_await node_board::until_created(require_valid(board));
}

asio::awaitable<void> written(board_ptr board, bytes data) {
    co_await node_board::until_written(require_valid(board), std::move(data).take());
}

asio::awaitable<persistent_node_state> other_state(board_ptr board, persistent_node_state known) {
    co_return co_await node_board::until_other_state(require_valid(board), known);
}

asio::awaitable<void> until_ended(board_ptr board) { co_await node_board::until_ended(require_valid(board)); }

asio::awaitable<void> until_left(board_ptr board) {
    if (board) co_await node_board::until_left(board);
}

}  // namespace

persistent_node::persistent_node(client zk, std::string path, bytes data, persistent_node_options options)
    : path_(path),
      owner_(std::make_shared<node_owner>(zk, std::move(path), std::move(data), std::move(options))) {}

asio::awaitable<std::string> persistent_node::created() const { return created_at(board_of(owner_)); }

asio::awaitable<void> persistent_node::set_data(bytes data) const { return written(board_of(owner_), std::move(data)); }

persistent_node_state persistent_node::state() const noexcept {
    return owner_ ? owner_->board()->state() : persistent_node_state::ended;
}

std::string persistent_node::standing_path() const {
    return owner_ ? owner_->board()->known_path() : std::string();
}

std::string persistent_node::data() const { return owner_ ? owner_->board()->written_data() : std::string(); }

asio::awaitable<persistent_node_state> persistent_node::state_after(persistent_node_state known) const {
    return other_state(board_of(owner_), known);
}

asio::awaitable<void> persistent_node::ended() const { return until_ended(board_of(owner_)); }

asio::awaitable<void> persistent_node::leave() const {
    if (owner_) owner_->leave();
    return until_left(board_of(owner_));
}

}  // namespace zkasio
