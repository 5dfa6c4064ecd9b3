#pragma once

#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
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
#include <tuple>
#include <utility>
#include <vector>

namespace group_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

inline const std::string directory = "/deep/group";

struct group_faults {
    bool drops = false, expiries = false;
    bool operator_deletes = false;  // members, or the directory as well
    bool operator_creates = false;  // nodes that stay, where members are
};

/// Members of a group come and go, some of several clients with the same id, and observers follow them.
class group_scenario {
public:
    group_scenario(simulation& simulated, const group_faults& f) : s(simulated), faults_(f) {
        s.on_quiet = [this] { check_quiet(); };
    }
    ~group_scenario() {
        s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        options_.names(std::array{group_names::curator, group_names::kazoo_party,
                                  group_names::kazoo_shallow_party}[s.pick(s.chance(50) ? 1 : 3)]);
        const std::size_t clients = 2 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 1 + s.pick(3); n > 0; --n) open_observer(some_client());
        for (std::size_t n = 1 + s.pick(6); n > 0; --n, ++working_)
            s.spawn(s.user_executor(), come_and_go(some_client(), 1 + s.pick(4)));
        ++working_;
        s.spawn(trouble(10 + s.pick(30)));
        s.run();
        end();
    }

private:
    struct member {
        int client = 0;
        std::string id, data;
        group_membership is;
        bool is_in = false, leaves = false;
        bool may_have_other_data = false;  // a set_data() was cancelled, perhaps before it began
    };
    struct observer {
        observer(int c, group_observer o) : client(c), follows(std::move(o)) {}
        const int client;
        const group_observer follows;
        std::optional<running> reads;
        std::optional<group_view> last;
        bool waits = false;
    };

    int some_client() { return static_cast<int>(s.pick(static_cast<std::size_t>(s.clients()))); }
    group group_of(int client) const { return {s.client_number(client), directory, options_}; }
    bool is_connected(int client) const { return s.client_number(client).state() == session_state::connected; }
    bool is_curator() const { return options_.names() == group_names::curator; }

    // ------------------------------------------------------------------------------------------------- members
    asio::awaitable<void> come_and_go(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(60));
            const std::string id(1, static_cast<char>('a' + s.pick(4)));
            if (!busy_.emplace(client, id).second) continue;
            co_await be_member(client, id);
        }
        --working_;
    }

    asio::awaitable<void> join(member* m) {
        const std::string data = is_curator() ? m->data : std::string();
        group_membership joined = co_await group_of(m->client).join(m->id, data);
        m->is = std::move(joined);
        m->is_in = true;
    }

    asio::awaitable<void> be_member(int client, std::string id) {
        const auto m = members_.emplace(members_.end());
        m->client = client;
        m->id = id;
        m->data = id + std::to_string(++writes_);
        s.note(m->data, " of client ", std::to_string(client), " joins");
        running joins(s.user_executor(client), join(&*m));
        const auto cancelled = std::make_shared<bool>(false);
        s.after(s.pick(s.chance(20) ? 50 : 400), [joins, cancelled]() mutable {
            if (joins.ended()) return;
            *cancelled = true;
            joins.cancel();
        });
        const std::error_code failed = co_await joins.code();
        if (failed && !(*cancelled && failed == condition::cancelled))
            throw violation("join() fails: " + failed.message());
        s.note(m->data, failed ? " has not joined" : " has joined");
        if (!failed) co_await stay(&*m);
        busy_.erase({client, id});
        members_.erase(m);
    }

    asio::awaitable<void> stay(member* m) {
        co_await s.pause(s.pick(80));
        if (is_curator() && s.chance(50)) {
            const std::string data = m->id + std::to_string(++writes_);
            m->data = data;
            running writes(s.user_executor(m->client), m->is.set_data(data));
            s.after(s.pick(200), [writes]() mutable { writes.cancel(); });  // who waits for the node to stand
            const std::error_code failed = co_await writes.code();
            if (failed && failed != condition::cancelled) throw violation("set_data() fails: " + failed.message());
            m->may_have_other_data = static_cast<bool>(failed);
            co_await s.pause(s.pick(80));
        }
        m->leaves = true;
        s.note(m->data, " leaves");
        if (s.chance(40)) co_return;
        const std::string path = m->is.path();
        co_await m->is.leave();
        s.note(m->data, " has left");
        const sim_node* const left = s.ensemble.tree().find(path);
        if (left && left->data == m->data && left->stat.ephemeral_owner == s.ensemble.session_of(m->client))
            throw violation(m->data + " has left, and its node is there");
    }

    // ----------------------------------------------------------------------------------------------- observers
    void open_observer(int client) {
        observer& o = observers_.emplace_back(client, group_of(client).observe());
        o.reads.emplace(s.user_executor(client), observe(&o));
    }

    asio::awaitable<void> observe(observer* o) {
        for (;;) {
            o->waits = true;
            group_view view = co_await o->follows.next();
            o->waits = false;
            s.note("an observer of client ", std::to_string(o->client), " is told ", words_of(view));
            if (o->last == view) throw violation("an observer is told the same twice");
            if (!view.readable) throw violation("an observer is told that it may not list the group");
            o->last = std::move(view);
            if (s.chance(20)) co_await s.pause(s.pick(60));
        }
    }

    static std::string words_of(const group_view& view) {
        std::string text = view.current ? "now:" : "perhaps:";
        for (const member_info& m : view.members) text += ' ' + m.id + '=' + m.data;
        return text;
    }

    // --------------------------------------------------------------------------------------------------- checks
    // On purpose not the library's own code.
    std::vector<member_info> members_in_tree() const {
        std::vector<member_info> all;
        if (!s.ensemble.tree().find(directory)) return all;
        for (const std::string& name : s.ensemble.tree().children(directory)) {
            const std::string path = join_path(directory, name);
            const std::string data = s.ensemble.tree().find(path)->data;
            if (is_curator())
                all.push_back({name, data, path});
            else if (options_.names() == group_names::kazoo_shallow_party)
                all.push_back({name.substr(name.find('-') + 1), "", path});
            else if (name.find("__party__") != std::string::npos)
                all.push_back({data, "", path});
        }
        std::sort(all.begin(), all.end(), [](const member_info& a, const member_info& b) {
            return std::tie(a.id, a.path) < std::tie(b.id, b.path);
        });
        return all;
    }

    void check_quiet() const {
        const group_view now{members_in_tree(), true, true};
        for (const observer& o : observers_) {
            if (!is_connected(o.client)) continue;
            if (o.follows.members() != now)
                throw violation("an observer shows " + words_of(o.follows.members()) + ", true is " + words_of(now));
            if (o.waits && o.last != now)
                throw violation("an observer was told " + (o.last ? words_of(*o.last) : "nothing") + ", true is " +
                                words_of(now));
        }
        for (const member& m : members_)
            if (is_connected(m.client) && !m.leaves) check(m);
    }

    // A member stands, unless a node of another session, or one that stays, is in its way.
    void check(const member& m) const {
        const std::string path = m.is_in ? m.is.path() : join_path(directory, m.id);
        const sim_node* const n = s.ensemble.tree().find(path);
        const std::int64_t session = s.ensemble.session_of(m.client);
        const bool is_taken = n && n->stat.ephemeral_owner != session;
        if (!m.is_in) {
            if (!is_curator() || !is_taken) throw violation(m.data + " joins, and nobody is in its way");
            return;
        }
        if (is_taken && m.is.state() != persistent_node_state::taken)
            throw violation(m.data + " is " + std::string(to_string(m.is.state())) + ", and its path is taken");
        if (is_taken) return;
        if (!n) throw violation("the node of " + m.data + " is missing");
        if (m.is.state() != persistent_node_state::standing) throw violation(m.data + " does not stand");
        // When a node goes, the set_data() of its member may reach the next node of this name, with the same version.
        const bool is_of_id = !n->data.empty() && n->data.front() == m.id.front();
        const bool may_be_other = m.may_have_other_data || faults_.operator_deletes || faults_.expiries;
        const bool is_right = !is_curator() || n->data == m.data || (may_be_other && is_of_id);
        if (!is_right) throw violation("the node of " + m.data + " has other data: " + n->data);
    }

    // --------------------------------------------------------------------------------------------------- faults
    asio::awaitable<void> trouble(std::size_t rounds) {
        for (; rounds > 0 && working_ > 1; --rounds) {
            co_await s.pause(5 + s.pick(40));
            const int victim = some_client();
            const std::size_t what = s.pick(5);
            if (what == 0 && faults_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && faults_.expiries) s.ensemble.expire(victim);
            const std::vector<member_info> nodes = members_in_tree();
            if (what == 2 && faults_.operator_deletes && !nodes.empty()) remove(nodes[s.pick(nodes.size())].path);
            if (what == 3 && faults_.operator_deletes && s.chance(50)) {
                for (const member_info& m : nodes) remove(m.path);
                remove(directory);
            }
            if (what == 4 && faults_.operator_creates && is_curator()) co_await be_in_the_way();
        }
        --working_;
    }
    void remove(const std::string& path) {
        s.note("an operator deletes ", path);
        s.ensemble.operate(detail::remove_request{path, any_version});
    }
    asio::awaitable<void> be_in_the_way() {
        detail::create_request r;
        r.path = join_path(directory, std::string(1, static_cast<char>('a' + s.pick(4))));
        r.data = "an operator's";
        r.acl = open_acl();
        s.note("an operator creates ", r.path);
        const std::error_code failed = s.ensemble.operate(r);
        if (failed) co_return;
        co_await s.pause(s.pick(100));
        const sim_node* const n = s.ensemble.tree().find(r.path);
        if (n && n->stat.ephemeral_owner == 0) remove(r.path);
    }

    void end() {
        if (working_ != 0) throw violation("a member has not ended");
        check_quiet();
        if (!members_in_tree().empty()) throw violation("a member is left: " + members_in_tree().front().path);
        for (observer& o : observers_) {
            if (o.reads->ended()) s.spawn(ended_too_early(*o.reads));
            o.reads->cancel();
        }
        s.on_quiet = [] {};
        s.run();
        observers_.clear();
        s.run();
        s.close();
    }
    static asio::awaitable<void> ended_too_early(running observes) {
        const std::exception_ptr failed = co_await observes.end();
        if (failed) std::rethrow_exception(failed);
        throw violation("an observer has ended");
    }

    simulation& s;
    const group_faults faults_;
    group_options options_;
    std::list<member> members_;
    std::list<observer> observers_;
    std::set<std::pair<int, std::string>> busy_;  // ids that are in use, by client
    std::size_t working_ = 0, writes_ = 0;
};

}  // namespace group_simulation_tests
