#include <zkasio/locks/detail/joint_claims.hpp>

#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>
#include <zkasio/path.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/this_coro.hpp>

#include <functional>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {
namespace {

struct protected_name {
    std::string directory, id;
};

// G17: from before the transaction until its nodes have their places, no contender of this session follows these nodes.
class expectation {
public:
    expectation(const session& on, lock_spec_ptr spec, std::string prefix)
        : on_(on), prefix_(std::move(prefix)), queue_(std::make_shared<std::shared_ptr<lock_queue>>()) {
        asio::dispatch(on_.get_executor(), [on, spec = std::move(spec), prefix = prefix_, queue = queue_] {
            *queue = lock_queue::of(on, spec);
            (*queue)->expect_node(prefix);
        });
    }
    expectation(expectation&&) noexcept = default;
    expectation& operator=(expectation&&) = delete;
    ~expectation() {
        if (!queue_) return;
        try {
            asio::dispatch(on_.get_executor(), [prefix = prefix_, queue = queue_] {
                const auto waiting = std::exchange(*queue, nullptr);
                waiting->stop_expecting_node(prefix);
                waiting->reconsider();
            });
        } catch (...) {
            // Out of memory: a contender behind a node that is not ours looks again at the next event.
        }
    }

private:
    session on_;
    std::string prefix_;
    std::shared_ptr<std::shared_ptr<lock_queue>> queue_;  // used on the strand only
};

// Nodes that a transaction may have created. The destructor removes them unless settled() was called.
class joint_nodes {
public:
    explicit joint_nodes(session on) : on_(std::move(on)) {}
    joint_nodes(const joint_nodes&) = delete;
    joint_nodes& operator=(const joint_nodes&) = delete;
    ~joint_nodes() {
        try {
            for (const protected_name& n : names_) toolbox(on_).ensure_protected_removed(n.directory, n.id);
        } catch (...) {
            // Out of memory: the nodes go with the session.
        }
    }
    void expect(const acquire_request& what, std::string id) {
        expected_.emplace_back(on_, what.spec, what.spec->names.prefix(id, what.kind));
        names_.push_back({what.spec->directory, std::move(id)});
    }
    /// The transaction created no nodes, or the caller keeps the nodes.
    void settled() { names_.clear(); }
    /// Whether the transaction, whose answer was lost, was applied: then all nodes are there.
    asio::awaitable<bool> are_there() {
        const protected_name first = names_.front();
        std::vector<std::string> ids(1, first.id);
        const auto found = co_await toolbox(on_).find_all_protected(first.directory, std::move(ids));
        co_return !found.empty();
    }

    std::vector<std::string> paths;  ///< of the nodes that were created

private:
    session on_;
    std::vector<protected_name> names_;
    std::vector<expectation> expected_;
};

// Null: the caller tries again.
// @param waits the session `on`, patient().
asio::awaitable<std::unique_ptr<joint_nodes>> create_all(session on, session waits,
                                                         std::vector<acquire_request> requests, back_off& pauses) {
    auto nodes = std::make_unique<joint_nodes>(on);
    transaction steps;
    for (const acquire_request& w : requests) {
        const std::string id = w.spec->names.new_id();
        std::string path = join_path(w.spec->directory, w.spec->names.prefix(id, w.kind));
        steps.create(std::move(path), bytes(w.spec->data), w.spec->node);
        nodes->expect(w, id);
    }
    bool orphan = false, again = false;
    std::optional<error> hung_up;
    try {
        for (step_result& r : co_await waits.multi(steps)) nodes->paths.push_back(std::move(r.path));
        pauses.reset();
        co_return nodes;
    } catch (const error& e) {
        if (!e.outcome_unknown()) nodes->settled();
        orphan = e.code() == zk_errc::no_node;
        again = e.code() == condition::retryable;
        if (!orphan && !again) throw;
        if (e.hung_up()) hung_up.emplace(e);
    }
    if (hung_up) {
        const bool applied = co_await nodes->are_there();
        if (!applied) {
            nodes->settled();
            throw hung_up->not_applied();
        }
    }
    if (again) co_await pauses.pause();
    if (orphan)
        for (const acquire_request& w : requests) co_await make_directory(waits, w.spec);
    co_return nullptr;
}

}  // namespace

asio::awaitable<joint_claims> contend_for_all(session on, std::vector<acquire_request> requests) {
    const asio::any_io_executor from = co_await asio::this_coro::executor;
    const session waits = on.patient();
    for (const acquire_request& w : requests)  // G40: the nodes would keep other clients out
        if (w.when_contended == if_contended::wait)
            co_await lock_queue::no_bodies_in_the_way(waits, w.spec, w.kind, from);
    back_off pauses = toolbox(on).make_back_off();
    // Destroyed before the wait for the locks: at that point the queues know the nodes that it expects.
    std::unique_ptr<joint_nodes> nodes;
    while (!nodes) nodes = co_await create_all(on, waits, requests, pauses);
    joint_claims result;
    // The answer to a transaction has no czxid (the token). All nodes of one transaction have the same.
    const std::optional<node_stat> first = co_await waits.exists(nodes->paths.front());
    if (!first) {
        result.lost = nodes->paths.front();
        co_return result;
    }
    result.token = first->czxid;
    const auto lost = std::make_shared<first_loss>(toolbox(on).make_one_shot_event());
    std::vector<std::shared_ptr<queue_claim>> places;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        acquire_request what = requests[i];
        what.lost = lost;
        places.push_back(std::make_shared<queue_claim>(on, std::move(what), from, nodes->paths[i], result.token));
    }
    nodes->settled();
    nodes.reset();
    bool refused = false, displaced = false;
    std::function<asio::awaitable<void>()> decide = [&]() -> asio::awaitable<void> {
        for (const auto& place : places) {
            try {
                co_await place->decided();
            } catch (...) {
                rethrow_as("acquire", place->asked().spec->directory);
            }
            if (place->granted()) continue;
            (place->displaced() ? displaced : refused) = true;
            // All places of a refused try are decided soon.
            if (displaced || place->asked().when_contended == if_contended::wait) co_return;
        }
    };
    // If one place is lost, all have to be given up. Otherwise, with a new place at the end of one queue and the old
    // places in the others, two clients may stand in different orders in the same queues and wait for each other.
    const bool decided = co_await lost->happened.run_until(std::move(decide));
    if (refused) {  // the nodes in the other queues have kept others out
        for (const auto& place : places) place->give_up();
        for (const auto& place : places) co_await place->gone();
        co_return result;
    }
    if (!decided || displaced) {
        co_await lost->happened.wait();  // returns at once: the loss was reported before the place was given up
        result.lost = lost->path;
        co_return result;
    }
    result.claims.assign(places.begin(), places.end());
    co_return result;
}

}  // namespace zkasio::lock_detail
