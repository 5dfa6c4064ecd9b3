#pragma once

#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace discovery_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

inline const std::string base = "/deep/services", service = "alpha", directory = base + '/' + service;

struct discovery_faults {
    bool drops = false, expiries = false;
    bool operator_deletes = false;  // instances
    bool operator_creates = false;  // nodes that are no instances
};

/// Processes announce instances, some of which have the same id, and providers follow them.
class discovery_scenario {
public:
    discovery_scenario(simulation& simulated, const discovery_faults& f) : s(simulated), faults_(f) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_quiet = [this] { check_quiet(); };
    }
    ~discovery_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        const std::size_t clients = 2 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 1 + s.pick(2); n > 0; --n) open_provider(some_client());
        for (std::size_t n = 1 + s.pick(6); n > 0; --n, ++working_)
            s.spawn(s.user_executor(), announce_some(some_client(), 1 + s.pick(4)));
        ++working_;
        s.spawn(trouble(10 + s.pick(30)));
        s.run();
        end();
    }

private:
    struct announced {
        announced(int c, service_instance i) : client(c), is(std::move(i)) {}
        const int client;
        service_instance is;
        announcement stands;
        bool is_there = false, leaves = false;
        bool may_be_other = false;  // an update() was cancelled, perhaps before it began
    };
    struct follower {
        follower(int c, provider p) : client(c), follows(std::move(p)) {}
        const int client;
        const provider follows;
        std::optional<running> reads;
        service_view last;
        bool waits = false;
    };
    using instances = std::map<std::string, service_instance>;  // by the names of the nodes

    int some_client() { return static_cast<int>(s.pick(static_cast<std::size_t>(s.clients()))); }
    bool is_connected(int client) const { return s.client_number(client).state() == session_state::connected; }
    registry registry_of(int client) const { return {s.client_number(client), base}; }

    // Another session removes an instance only if its process was said to be dead, and once each time. A process whose
    // node was removed so, or by an operator, and that is about to withdraw, may take the new node for its own, once:
    // both have one version.
    void committed(const sim_txn& txn) {
        for (const sim_change& c : txn.changes) {
            if (parent_path(c.path) != directory || c.what != sim_change::kind::removed) continue;
            const std::int64_t owner = c.node.stat.ephemeral_owner;
            if (owner == 0 || owner == txn.session) continue;
            const bool takes_for_its_own = lost_.erase({c.path, txn.session}) != 0;
            lost_.emplace(c.path, owner);
            if (takes_for_its_own || txn.session == 0) continue;
            taken_.insert(c.path);
            if (++removed_by_others_ > said_to_be_dead_) throw violation("an instance was removed by another process");
        }
    }

    // ------------------------------------------------------------------------------------------------ processes
    asio::awaitable<void> announce_some(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(60));
            service_instance is(service);
            is.id(std::string(1, static_cast<char>('a' + s.pick(4)))).port(next_port()).enabled(s.chance(70));
            is.registered({}).type(type_of(is.id()));
            // Two processes that announce the same instance that stays would take it from each other.
            const int whose = is.type() == service_type::fixed ? simulation::everybody : client;
            if (!busy_.emplace(whose, is.id()).second) continue;
            co_await announce(client, is);
            busy_.erase({whose, is.id()});
        }
        --working_;
    }
    static service_type type_of(const std::string& id) {
        return id == "c" ? service_type::fixed : id == "d" ? service_type::dynamic_sequential : service_type::dynamic;
    }
    std::uint16_t next_port() { return ++port_; }

    asio::awaitable<void> begin(announced* a, predecessor before) {
        announcement made = co_await registry_of(a->client).announce(a->is, before);
        a->stands = std::move(made);
        a->is_there = true;
    }

    asio::awaitable<void> announce(int client, service_instance is) {
        const auto a = announced_.emplace(announced_.end(), client, is);
        const predecessor before = s.chance(25) ? predecessor::is_dead : predecessor::may_live;
        if (before == predecessor::is_dead) ++said_to_be_dead_;
        s.note("client ", std::to_string(client), " announces ", words_of(is));
        running task(s.user_executor(client), begin(&*a, before));
        const auto cancelled = std::make_shared<bool>(false);
        s.after(s.pick(s.chance(20) ? 50 : 400), [task, cancelled]() mutable {
            if (task.ended()) return;
            *cancelled = true;
            task.cancel();
        });
        const std::error_code failed = co_await task.code();
        if (failed && !(*cancelled && failed == condition::cancelled))
            throw violation("announce() fails: " + failed.message());
        s.note(words_of(is), failed ? " is not announced" : " is announced");
        if (!failed) co_await serve(&*a);
        announced_.erase(a);
    }

    asio::awaitable<void> serve(announced* a) {
        co_await s.pause(s.pick(80));
        if (s.chance(50)) {
            service_instance other = a->is;
            other.port(next_port()).enabled(s.chance(70));
            running updates(s.user_executor(a->client), a->stands.update(other));
            const auto cancelled = std::make_shared<bool>(false);
            s.after(50 + s.pick(200), [updates, cancelled]() mutable {  // the node may be taken
                if (!updates.ended()) *cancelled = true;
                updates.cancel();
            });
            const std::error_code failed = co_await updates.code();
            if (failed && !(*cancelled && failed == condition::cancelled))
                throw violation("update() fails: " + failed.message());
            a->is = other;
            a->may_be_other = static_cast<bool>(failed);
            co_await s.pause(s.pick(80));
        }
        a->leaves = true;
        s.note(words_of(a->is), " is withdrawn");
        if (s.chance(50)) co_return;
        co_await a->stands.withdraw();
        for (const auto& [node, is] : instances_in_tree())
            if (is == a->is) throw violation(words_of(is) + " was withdrawn, and is there");
    }

    static std::string words_of(const service_instance& is) {
        return is.id() + ':' + std::to_string(is.port().value_or(0)) + (is.enabled() ? "" : " (off)");
    }

    // ------------------------------------------------------------------------------------------------ providers
    void open_provider(int client) {
        provider_options how;
        how.eject_after(0);
        follower& f = followers_.emplace_back(client, provider(s.client_number(client), base, service, how));
        f.reads.emplace(s.user_executor(client), follow(&f));
    }

    asio::awaitable<void> follow(follower* f) {
        co_await f->follows.ready();
        for (;;) {
            f->waits = true;
            service_view now = co_await f->follows.changed(f->last);
            f->waits = false;
            if (now.version() <= f->last.version()) throw violation("a provider tells an older view");
            f->last = std::move(now);
            if (s.chance(20)) co_await s.pause(s.pick(60));
        }
    }

    // --------------------------------------------------------------------------------------------------- checks
    std::vector<std::string> nodes() const {
        return s.ensemble.tree().find(directory) ? s.ensemble.tree().children(directory) : std::vector<std::string>();
    }
    const std::string& data_of(const std::string& node) const {
        return s.ensemble.tree().find(join_path(directory, node))->data;
    }
    instances instances_in_tree() const {
        instances all;
        for (const std::string& node : nodes())
            if (data_of(node) != "nonsense") all.emplace(node, service_instance::from_json(data_of(node)));
        return all;
    }
    static instances instances_in(const service_view& view) {
        instances all;
        view.for_each([&](const std::string& node, const service_instance& is) { all.emplace(node, is); });
        return all;
    }

    void check_quiet() const {
        for (const follower& f : followers_)
            if (is_connected(f.client)) check(f);
        for (const announced& a : announced_)
            if (is_connected(a.client) && a.is_there && !a.leaves) check(a);
    }

    void check(const follower& f) const {
        const instances now = instances_in_tree();
        const service_view view = f.follows.view();
        if (!view.current() || instances_in(view) != now) throw violation("a provider shows other instances");
        if (view.unreadable().size() != nodes().size() - now.size())
            throw violation("a provider does not show a node that is no instance");
        if (f.waits && f.last.version() != view.version()) throw violation("a provider has not told the newest view");
        const bool any =
            std::any_of(now.begin(), now.end(), [](const auto& one) { return one.second.enabled(); });
        const picked one = f.follows.try_pick();
        if (static_cast<bool>(one) != any) throw violation(any ? "nothing is picked" : "something is picked");
        const bool is_there = !any || (one->enabled() && std::any_of(now.begin(), now.end(), [&](const auto& other) {
                                          return other.second == *one;
                                      }));
        if (!is_there) throw violation("an instance is picked that is not there: " + words_of(*one));
        if (any && one.outstanding() != 1) throw violation("an instance has uses that are over");
    }

    void check(const announced& a) const {
        const sim_node* const n = s.ensemble.tree().find(a.stands.path());
        const bool is_taken = a.stands.state() == persistent_node_state::taken;
        if (is_taken) {
            if (!n || n->stat.ephemeral_owner == s.ensemble.session_of(a.client))
                throw violation(words_of(a.is) + " waits, and nobody is in its way");
            return;
        }
        if (a.stands.state() != persistent_node_state::standing) throw violation(words_of(a.is) + " does not stand");
        const instances now = instances_in_tree();
        const bool is_there = std::any_of(now.begin(), now.end(), [&](const auto& one) { return one.second == a.is; });
        // When an operator, or who said that its process was dead, has removed a node, another client's instance may
        // have the name, with a first version, too: then it gets what is written into the former.
        const bool may_be_other = a.may_be_other || faults_.operator_deletes || taken_.contains(a.stands.path());
        if (!is_there && !may_be_other) throw violation(words_of(a.is) + " is announced, and not there");
    }

    // --------------------------------------------------------------------------------------------------- faults
    asio::awaitable<void> trouble(std::size_t rounds) {
        for (; rounds > 0 && working_ > 1; --rounds) {
            co_await s.pause(5 + s.pick(40));
            const int victim = some_client();
            const std::size_t what = s.pick(4);
            if (what == 0 && faults_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && faults_.expiries) s.ensemble.expire(victim);
            const std::vector<std::string> all = nodes();
            if (what == 2 && faults_.operator_deletes && !all.empty()) remove(all[s.pick(all.size())]);
            if (what == 3 && faults_.operator_creates) co_await create_nonsense();
        }
        --working_;
    }
    void remove(const std::string& node) {
        s.note("an operator deletes ", node);
        s.ensemble.operate(detail::remove_request{join_path(directory, node), any_version});
    }
    asio::awaitable<void> create_nonsense() {
        detail::create_request r;
        r.path = join_path(directory, "notes");
        r.data = "nonsense";
        r.acl = open_acl();
        const std::error_code failed = s.ensemble.operate(r);
        if (failed) co_return;
        co_await s.pause(s.pick(100));
        remove("notes");
    }

    void end() {
        if (working_ != 0) throw violation("a process has not ended");
        check_quiet();
        if (!nodes().empty()) throw violation("an instance is left: " + nodes().front());
        for (follower& f : followers_) {
            if (f.reads->ended()) s.spawn(ended_too_early(*f.reads));
            f.reads->cancel();
        }
        s.on_quiet = [] {};
        s.run();
        followers_.clear();
        s.run();
        s.close();
    }
    static asio::awaitable<void> ended_too_early(running follows) {
        const std::exception_ptr failed = co_await follows.end();
        if (failed) std::rethrow_exception(failed);
        throw violation("a follower has ended");
    }

    simulation& s;
    const discovery_faults faults_;
    std::list<announced> announced_;
    std::list<follower> followers_;
    std::set<std::pair<int, std::string>> busy_;  // ids that are in use, by client
    std::set<std::pair<std::string, std::int64_t>> lost_;  // paths, and the sessions whose nodes others have removed
    std::set<std::string> taken_;                          // these paths
    std::size_t working_ = 0, said_to_be_dead_ = 0, removed_by_others_ = 0;
    std::uint16_t port_ = 0;
};

}  // namespace discovery_simulation_tests
