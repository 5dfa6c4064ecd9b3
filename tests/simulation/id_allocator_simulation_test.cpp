#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace id_allocator_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string ids_path = "/ids/simulated", numbers_path = "/ids/numbers";

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_deletes = false;  // the node that counts the blocks

    bool any() const { return drops || expiries || cancellations || operator_deletes; }
};

/// An id_allocator, and what was given of it.
struct allocator {
    allocator(int c, id_allocator i) : client(c), ids(std::move(i)) {}

    const int client;
    id_allocator ids;
    std::optional<std::uint64_t> last;
    std::optional<std::set<std::int64_t>> nodes;  // czxids: which one has counted its blocks; nothing: not known
    bool is_dead = false;                         // the node was re-created
};

/// Knows who has counted which block, and what was given of it. Throws `violation` when an id comes twice, when it is
/// none of a block that its client has counted, and when an allocator leaves ids out.
class id_ledger {
public:
    explicit id_ledger(std::uint64_t block) : block_(block) {}

    /// @param client that has written; -1: an operator
    void counted(int client, std::int64_t node, std::int32_t version) {
        blocks_[{node, static_cast<std::uint64_t>(version) - 1}] = client;
        ++counted_by_[client];
    }
    void given(allocator& a, std::uint64_t id) {
        const std::uint64_t number = id / block_;
        std::set<std::int64_t> nodes;
        for (const auto& [which, client] : blocks_)
            if (which.second == number && client == a.client && (!a.nodes || a.nodes->contains(which.first)))
                nodes.insert(which.first);
        if (nodes.empty()) throw violation(std::to_string(id) + " is of a block that its client has not counted");
        a.nodes = nodes;
        if (nodes.size() == 1 && !given_.insert({*nodes.begin(), id}).second)
            throw violation(std::to_string(id) + " was given twice");
        if (a.last && id <= *a.last)
            throw violation(std::to_string(id) + " was given after " + std::to_string(*a.last));
        const bool begins_block = id % block_ == 0, last_was_full = !a.last || *a.last % block_ == block_ - 1;
        if (begins_block ? !last_was_full : !a.last || id != *a.last + 1)
            throw violation("ids before " + std::to_string(id) + " were left out");
        a.last = id;
        if (begins_block) ++used_by_[a.client];
    }
    /// The blocks of this client of which no id was given.
    std::size_t lost(int client) { return counted_by_[client] - used_by_[client]; }

private:
    const std::uint64_t block_;
    std::map<std::pair<std::int64_t, std::uint64_t>, int> blocks_;  // node and number of a block; the client
    std::set<std::pair<std::int64_t, std::uint64_t>> given_;        // node and id
    std::map<int, std::size_t> counted_by_, used_by_;               // blocks, by client
};

/// Coroutines of several clients take ids of one path, and unique numbers of another.
class id_scenario {
public:
    id_scenario(simulation& simulated, troubles t)
        : s(simulated), with_(t), block_(static_cast<std::uint32_t>(1 + s.pick(9))), ledger_(block_) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_idle = [this] {
            for (int n = 0; n < s.clients(); ++n)
                if (s.ensemble.session_of(n) != 0) client_of_[s.ensemble.session_of(n)] = n;
        };
    }
    ~id_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_idle = [] {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        const std::size_t clients = 1 + s.pick(4), workers = 2 + s.pick(8), rounds = 1 + s.pick(30);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        // Only one of a client at a time, where the node is re-created: then it is known which node has counted.
        for (std::size_t n = 0; n < clients; ++n)
            for (std::size_t some = with_.operator_deletes ? 1 : 1 + s.pick(2); some > 0; --some)
                make_allocator(static_cast<int>(n));
        for (std::size_t n = 0; n < workers; ++n, ++working_)
            s.spawn(s.user_executor(), worker(static_cast<int>(s.pick(clients)), rounds));
        if (with_.any()) s.spawn(trouble());
        s.run();
        if (working_ != 0) throw violation("a worker has not ended");
        check_losses();
        s.close();
    }

private:
    using allocator_ptr = std::shared_ptr<allocator>;

    allocator_ptr make_allocator(int client) {
        id_allocator ids(s.client_number(client), ids_path, id_options().block(block_));
        allocators_.push_back(std::make_shared<allocator>(client, std::move(ids)));
        return allocators_.back();
    }
    allocator_ptr any_allocator(int client) {
        std::vector<allocator_ptr> all;
        for (const allocator_ptr& a : allocators_)
            if (a->client == client && !a->is_dead) all.push_back(a);
        return all.empty() ? make_allocator(client) : all[s.pick(all.size())];
    }

    void committed(const sim_txn& txn) {
        if (txn.ends_session) sessions_end_ = true;
        for (const sim_change& c : txn.changes) {
            if (c.what == sim_change::kind::data_set && c.path == ids_path)
                ledger_.counted(client_of_.at(txn.session), c.node.stat.czxid, c.node.stat.version);
            if (c.what == sim_change::kind::data_set && c.path == numbers_path) ++numbers_counted_;
        }
    }

    // Only what was under way when a connection or a session ended is lost, and what an allocator keeps at the end.
    void check_losses() {
        if (with_.operator_deletes) return;
        for (int n = 0; n < s.clients(); ++n) {
            const auto its = static_cast<std::size_t>(std::count_if(
                allocators_.begin(), allocators_.end(), [n](const allocator_ptr& a) { return a->client == n; }));
            if (ledger_.lost(n) > its * (1 + cuts_[n])) throw violation("too many blocks are lost");
        }
        if (!with_.any() && numbers_counted_ != numbers_.size()) throw violation("a number is lost");
    }

    asio::awaitable<void> take(allocator_ptr a) {
        const bool was_dead = a->is_dead;
        const std::uint64_t id = co_await a->ids.next();
        s.note("client ", std::to_string(a->client), " has the id ", std::to_string(id));
        if (was_dead) throw violation("an allocator whose node was re-created goes on");
        ledger_.given(*a, id);
    }
    asio::awaitable<void> count(client zk) {
        const std::int32_t before = numbers_.empty() ? 0 : *numbers_.rbegin();
        const std::int32_t number = co_await next_number(zk, numbers_path);
        if (!numbers_.insert(number).second) throw violation(std::to_string(number) + " was given twice");
        if (number <= before) throw violation("a number is smaller than one that was given before its call");
    }

    void expect(const std::exception_ptr& failed, allocator& a, bool was_dead, bool cancelled) const {
        try {
            std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            if (cancelled && e.code() == condition::cancelled) return;
            if (sessions_end_ && e.code() == errc::session_expired) return;
            if (e.code() == zk_errc::data_inconsistency) a.is_dead = true;
            if (with_.operator_deletes && !was_dead && e.code() == zk_errc::no_node) return;
            if (with_.operator_deletes && e.code() == zk_errc::data_inconsistency) return;
            throw violation(std::string("an operation failed: ") + e.what());
        }
    }

    asio::awaitable<void> attempt(int client, allocator_ptr a, bool wants_number) {
        const bool was_dead = a->is_dead;
        const auto cancelled = std::make_shared<bool>(false);
        running task(s.user_executor(client), wants_number ? count(s.client_number(client)) : take(a));
        if (with_.cancellations && s.chance(30))
            s.after(s.pick(30), [task, cancelled]() mutable {
                if (task.ended()) return;
                *cancelled = true;
                task.cancel();
            });
        const std::exception_ptr failed = co_await task.end();
        if (failed) expect(failed, *a, was_dead, *cancelled);
    }

    asio::awaitable<void> worker(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(10), client);
            // A dead one is asked again now and then: it stays dead.
            const allocator_ptr a = s.chance(10) ? allocators_[s.pick(allocators_.size())] : any_allocator(client);
            const std::size_t what = s.pick(10);
            const std::optional<std::uint64_t> id = what == 0 ? a->ids.try_next() : std::nullopt;
            if (id) ledger_.given(*a, *id);
            if (what > 0) co_await attempt(a->client, a, what == 1);
        }
        --working_;
    }

    asio::awaitable<void> trouble() {
        for (int n = 0; n < 40 && working_ > 0; ++n) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(3);
            if (what == 0 && with_.drops) cuts_[victim] += s.ensemble.drop_connection(victim);
            if (what == 1 && with_.expiries) cuts_[victim] += s.ensemble.expire(victim);
            if (what == 2 && with_.operator_deletes && s.chance(30))
                s.ensemble.operate(detail::remove_request{ids_path, any_version});
        }
    }

    simulation& s;
    const troubles with_;
    const std::uint32_t block_;
    id_ledger ledger_;
    std::vector<allocator_ptr> allocators_;
    std::set<std::int32_t> numbers_;  // given by next_number()
    std::size_t numbers_counted_ = 0;
    std::map<std::int64_t, int> client_of_;  // by session
    std::map<int, std::size_t> cuts_;        // ends of connections and sessions, by client
    std::size_t working_ = 0;
    bool sessions_end_ = false;
};

void run_ids(const std::string& name, troubles t) {
    run_seeds("id_allocator, " + name, 300, [&](simulation& s) { id_scenario(s, t).run(); });
}

}  // namespace

TEST_CASE("id_allocator, simulated: several clients take ids", "[simulation]") { run_ids("calm", {}); }

TEST_CASE("id_allocator, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_ids("drops", t);
}

TEST_CASE("id_allocator, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_ids("expiries", t);
}

TEST_CASE("id_allocator, simulated: calls are cancelled", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = true;
    run_ids("cancellations", t);
}

TEST_CASE("id_allocator, simulated: an operator deletes the node", "[simulation]") {
    troubles t;
    t.drops = t.operator_deletes = true;
    run_ids("operator", t);
}

}  // namespace id_allocator_simulation_tests
