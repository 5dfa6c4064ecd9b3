#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace persistent_node_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string directory = "/deep/nodes";

struct node_faults {
    bool drops = false, expiries = false;
    bool operator_deletes = false;  // nodes, or their directory as well
    bool operator_writes = false;
};

/// Clients keep nodes, each with data of its own, "<id> <number of the write>".
class node_scenario {
public:
    node_scenario(simulation& simulated, const node_faults& f) : s(simulated), faults_(f) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_quiet = [this] { check_quiet(); };
    }
    ~node_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        const std::size_t clients = 1 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 1 + s.pick(5); n > 0; --n, ++working_)
            s.spawn(s.user_executor(), keep_some(static_cast<int>(s.pick(clients)), 1 + s.pick(4)));
        ++working_;
        s.spawn(trouble(10 + s.pick(30)));
        s.run();
        if (working_ != 0) throw violation("a user has not ended");
        if (!nodes_of("").empty()) throw violation("a node is left: " + nodes_of("").front());
        s.close();
    }

private:
    struct kept {
        int client = 0;
        std::string id;
        create_mode mode = create_mode::ephemeral;
        std::optional<persistent_node> node;
        bool stands = false, leaves = false;
        std::size_t writes = 0;
        bool is_overwritten = false;  // by an operator, since the last create or set_data()
    };

    void committed(const sim_txn& txn) {
        for (const sim_change& c : txn.changes) {
            if (parent_path(c.path) != directory) continue;
            const std::string id = c.node.data.substr(0, c.node.data.find(' '));
            if (c.what == sim_change::kind::created && gone_.contains(id))
                throw violation("the node of " + id + " was created after it had left");
            for (kept& k : kept_) {
                const bool is_its = c.node.data.starts_with(k.id + ' ');
                if (is_its && txn.session == 0 && c.what == sim_change::kind::data_set) k.is_overwritten = true;
                if (is_its && txn.session != 0) k.is_overwritten = false;
            }
        }
    }

    // The paths of all nodes whose data begin with this.
    std::vector<std::string> nodes_of(const std::string& beginning) const {
        std::vector<std::string> all;
        for (const auto& [path, n] : s.ensemble.tree().nodes())
            if (parent_path(path) == directory && n.data.starts_with(beginning)) all.push_back(path);
        return all;
    }

    bool is_connected(int client) const { return s.client_number(client).state() == session_state::connected; }

    void check_quiet() const {
        for (const kept& k : kept_) {
            if (!k.stands || k.leaves || !is_connected(k.client)) continue;
            const std::vector<std::string> nodes = nodes_of(k.id + ' ');
            if (nodes.size() != 1) throw violation(k.id + " has " + std::to_string(nodes.size()) + " nodes");
            if (k.node->state() != persistent_node_state::standing) throw violation(k.id + " does not stand");
            if (k.node->standing_path() != nodes.front()) throw violation(k.id + " has another node");
            const sim_node& n = *s.ensemble.tree().find(nodes.front());
            const std::int64_t owner = n.stat.ephemeral_owner;
            if (is_ephemeral(k.mode) ? owner != s.ensemble.session_of(k.client) : owner != 0)
                throw violation("the node of " + k.id + " is of another session");
            if (!k.is_overwritten && n.data != k.node->data())
                throw violation("the node of " + k.id + " has other data");
        }
    }

    asio::awaitable<void> keep_some(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(40));
            co_await keep_one(client);
        }
        --working_;
    }

    asio::awaitable<void> keep_one(int client) {
        const std::array<create_mode, 4> modes{create_mode::ephemeral, create_mode::ephemeral_sequential,
                                               create_mode::persistent, create_mode::persistent_sequential};
        const auto k = kept_.emplace(kept_.end());
        k->client = client;
        k->id = "n" + std::to_string(++ids_);
        k->mode = modes[s.pick(modes.size())];
        k->node.emplace(s.client_number(client), join_path(directory, k->id + '-'), k->id + " 0",
                        persistent_node_options().mode(k->mode));
        s.note(k->id, " is kept by client ", std::to_string(client));
        if (s.chance(80)) {
            const std::string path = co_await k->node->created();
            k->stands = true;
            s.note(k->id, " stands: ", path);
        }
        for (std::size_t writes = s.pick(3); writes > 0; --writes) {
            co_await s.pause(s.pick(60));
            co_await write(&*k);
        }
        co_await s.pause(s.pick(100));
        k->leaves = true;
        s.note(k->id, " leaves");
        if (s.chance(50)) {
            co_await k->node->leave();
            if (!nodes_of(k->id + ' ').empty()) throw violation(k->id + " has left, and its node is there");
            gone_.insert(k->id);
            s.note(k->id, " has left");
        }
        kept_.erase(k);
    }

    // The wait may be cancelled: the data are written nevertheless.
    asio::awaitable<void> write(kept* k) {
        const std::string data = k->id + ' ' + std::to_string(++k->writes);
        running task(s.user_executor(k->client), k->node->set_data(data));
        const auto cancelled = std::make_shared<bool>(false);
        if (s.chance(20))
            s.after(s.pick(40), [task, cancelled]() mutable {
                *cancelled = true;
                task.cancel();
            });
        const std::error_code code = co_await task.code();
        if (code && !(*cancelled && code == condition::cancelled))
            throw violation("set_data() fails: " + code.message());
        if (code) co_return;
        k->stands = true;
        if (k->node->data() != data) throw violation(k->id + " has other data than were written");
    }

    asio::awaitable<void> trouble(std::size_t rounds) {
        for (; rounds > 0 && working_ > 1; --rounds) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(5);
            if (what == 0 && faults_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && faults_.expiries) s.ensemble.expire(victim);
            const std::vector<std::string> nodes = nodes_of("");
            if (what == 2 && faults_.operator_deletes && !nodes.empty()) remove(nodes[s.pick(nodes.size())]);
            if (what == 3 && faults_.operator_deletes && s.chance(50)) {
                for (const std::string& path : nodes) remove(path);
                remove(directory);
            }
            if (what == 4 && faults_.operator_writes && !nodes.empty()) overwrite(nodes[s.pick(nodes.size())]);
        }
        --working_;
    }
    void remove(const std::string& path) {
        s.note("an operator deletes ", path);
        s.ensemble.operate(detail::remove_request{path, any_version});
    }
    void overwrite(const std::string& path) {
        s.note("an operator writes ", path);
        const std::string data = s.ensemble.tree().find(path)->data;
        s.ensemble.operate(detail::set_request{path, data + '!', any_version});
    }

    simulation& s;
    const node_faults faults_;
    std::list<kept> kept_;
    std::set<std::string> gone_;
    std::size_t working_ = 0, ids_ = 0;
};

void run_nodes(const std::string& name, const node_faults& f) {
    run_seeds("persistent nodes, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        s.ensemble.new_sessions_lag = s.ensemble.lagging && s.chance(50);
        node_scenario(s, f).run();
    });
}

}  // namespace

TEST_CASE("persistent_node, simulated: nodes come and go", "[simulation]") { run_nodes("calm", {}); }

TEST_CASE("persistent_node, simulated: connections break", "[simulation]") {
    node_faults f;
    f.drops = true;
    run_nodes("drops", f);
}

TEST_CASE("persistent_node, simulated: sessions expire", "[simulation]") {
    node_faults f;
    f.drops = f.expiries = true;
    run_nodes("expiries", f);
}

TEST_CASE("persistent_node, simulated: an operator deletes and writes nodes", "[simulation]") {
    node_faults f;
    f.drops = f.operator_deletes = f.operator_writes = true;
    run_nodes("operator", f);
}

TEST_CASE("persistent_node, simulated: an operator deletes nodes while sessions expire", "[simulation]") {
    node_faults f;
    f.drops = f.expiries = f.operator_deletes = f.operator_writes = true;
    run_nodes("all of it", f);
}

}  // namespace persistent_node_simulation_tests
