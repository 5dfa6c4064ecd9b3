#include "simulation/barrier_scenario.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::test {
namespace {

const std::string ready = barrier_directory + "/ready";

}  // namespace

// ----------------------------------------------------------------------------------------------------- checker

std::vector<std::string> barrier_checker::standing() const {
    std::vector<std::string> all;
    for (const auto& [path, m] : standing_) all.push_back(path);
    return all;
}

void barrier_checker::committed(const sim_txn& txn) {
    for (const sim_change& c : txn.changes) {
        if (parent_path(c.path) != barrier_directory || c.path == ready) continue;
        if (c.what == sim_change::kind::created) {
            member& m = standing_[c.path];
            m = {};
            m.born = c.node.stat.czxid;
            m.session = c.node.stat.ephemeral_owner;
        } else if (c.what == sim_change::kind::removed) {
            standing_.erase(c.path);
        }
    }
    const sim_node* const round = ensemble_.tree().find(ready);
    const bool enough = standing_.size() >= members_;
    const bool others_are_in =
        round && std::any_of(standing_.begin(), standing_.end(), [](const auto& m) { return m.second.in_a_round; });
    for (auto& [path, m] : standing_) {
        m.in_a_round = m.in_a_round || enough || others_are_in;
        if (m.in_a_round) passed_.insert(path);
    }
}

void barrier_checker::entered(const std::string& node) {
    if (!passed_.contains(node)) throw violation(node + " has entered alone");
    if (const auto it = standing_.find(node); it != standing_.end()) it->second.inside = true;
}

std::set<std::string> barrier_checker::begins_to_leave(const std::string& node) {
    std::set<std::string> inside;
    for (const auto& [path, m] : standing_)
        if (m.inside && path != node) inside.insert(path);
    return inside;
}

void barrier_checker::left(const std::string& node, const std::set<std::string>& inside) const {
    if (standing_.contains(node)) throw violation(node + " has left, and its node is there");
    for (const std::string& other : inside)
        if (standing_.contains(other)) throw violation(node + " has left before " + other);
}

void barrier_checker::check() const {
    if (!exactly_) return;
    const auto inside =
        std::count_if(standing_.begin(), standing_.end(), [](const auto& m) { return m.second.inside; });
    if (static_cast<std::size_t>(inside) > members_) throw violation("too many are inside");
}

// ---------------------------------------------------------------------------------------------------- scenario

barrier_scenario::barrier_scenario(simulation& s, shape of)
    : s_(s), shape_(of), checker_(s.ensemble, of.members, of.exactly) {
    s_.ensemble.on_commit = [this](const sim_txn& txn) {
        if (txn.ends_session)
            for (int n = 0; n < s_.clients(); ++n)
                if (s_.ensemble.session_of(n) == txn.session) expired_.insert(n);
        if (txn.session == 0 && !txn.changes.empty()) operator_was_here_ = true;
        checker_.committed(txn);
    };
    s_.on_idle = [this] { checker_.check(); };
}

barrier_scenario::~barrier_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = [] {};
}

double_barrier barrier_scenario::barrier_of(client zk) const {
    return {std::move(zk), barrier_directory, shape_.members, double_barrier_options().exactly(shape_.exactly)};
}

asio::awaitable<void> barrier_scenario::enter(barrier_scenario& self, client zk, std::string id, entry_ptr to) {
    barrier_entry entry = co_await self.barrier_of(zk).enter();
    self.s_.note(id, " is inside, as ", entry.path());
    self.s_.seen_by_all();
    self.checker_.entered(entry.path());
    to->emplace(std::move(entry));
}

asio::awaitable<void> barrier_scenario::leave(barrier_scenario& self, std::string id, entry_ptr entry) {
    const std::string node = (*entry)->path();
    const std::set<std::string> inside = self.checker_.begins_to_leave(node);
    self.s_.seen_by_all();
    co_await (*entry)->leave();
    self.s_.seen_by_all();
    self.s_.note(id, " has left");
    self.checker_.left(node, inside);
}

asio::awaitable<void> barrier_scenario::run(barrier_scenario& self, client zk, std::string id, std::size_t steps) {
    auto body = [&](barrier_entry& entry) -> asio::awaitable<void> {
        self.s_.note(id, " runs inside, as ", entry.path());
        self.checker_.entered(entry.path());
        co_await self.s_.pause(steps);
    };
    co_await self.barrier_of(zk).run(body);
}

void barrier_scenario::expect(int client, const std::string& id, std::exception_ptr failed, bool cancelled) const {
    if (!failed) return;
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        if (cancelled && e.code() == condition::cancelled) return;
        if (shape_.exactly && e.code() == errc::too_many_members) return;
        if (expired_.contains(client) && (e.code() == condition::session_ended || e.code() == errc::lock_lost)) return;
        if (operator_was_here_ && e.code() == errc::lock_lost) return;
        throw violation(id + " failed: " + e.what());
    }
}

asio::awaitable<void> barrier_scenario::attempt(int number, std::string id) {
    const client zk = s_.client_number(number);
    const auto entry = std::make_shared<std::optional<barrier_entry>>();
    const auto cancelled = std::make_shared<bool>(false);
    const std::size_t hold = s_.pick(s_.chance(70) ? 5 : 40);
    s_.note(id, " enters");
    const bool runs = s_.chance(30);
    running entering(s_.user_executor(number), runs ? run(*this, zk, id, hold) : enter(*this, zk, id, entry));
    entering_.insert_or_assign(id, entering);
    if (s_.chance(25))
        s_.after(s_.pick(s_.chance(50) ? 12 : 120), [this, entering, cancelled, id]() mutable {
            if (entering.ended()) return;
            s_.note("cancel ", id);
            *cancelled = true;
            entering.cancel();
        });
    const std::exception_ptr failed = co_await entering.end();
    entering_.erase(id);
    if (outside_ > 0 && --outside_ == 0 && leaves_in_any_order_) s_.rest_in_any_order();
    s_.note(id, failed ? " did not enter" : " entered");
    expect(number, id, failed, *cancelled || finishing_);
    if (!*entry) co_return;
    co_await s_.pause(hold, number);
    if (s_.chance(30)) {
        entry->reset();
        co_return;
    }
    running leaving(s_.user_executor(number), leave(*this, id, entry));
    const bool gives_up = s_.chance(20);
    if (gives_up) s_.after(s_.pick(20), [leaving]() mutable { leaving.cancel(); });
    const std::exception_ptr leave_failed = co_await leaving.end();
    expect(number, id, leave_failed, gives_up);
}

asio::awaitable<void> barrier_scenario::worker(int client, std::size_t number, std::size_t rounds) {
    for (std::size_t r = 0; r < rounds && !finishing_; ++r) {
        co_await s_.pause(s_.pick(25), client);
        co_await attempt(client, std::to_string(number) + '.' + std::to_string(next_id_++));
    }
    --working_;
}

asio::awaitable<void> barrier_scenario::trouble(faults f) {
    for (int n = 0; n < 30 && working_ > 0 && !finishing_; ++n) {
        co_await s_.pause(5 + s_.pick(60));
        const int victim = static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients())));
        const std::size_t what = s_.pick(4);
        if (what == 0 && f.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && f.expiries && s_.chance(50)) s_.ensemble.expire(victim);
        const std::vector<std::string> nodes = checker_.standing();
        if (what == 2 && f.operator_deletes && !nodes.empty()) {
            const std::string path = nodes[s_.pick(nodes.size())];
            s_.note("an operator deletes ", path);
            s_.ensemble.operate(detail::remove_request{path, any_version});
        }
        if (what == 3 && f.containers) s_.ensemble.remove_empty_containers();
    }
}

void barrier_scenario::run_at_random(const faults& f) {
    s_.let_users_be_late();
    for (std::size_t n = 0; n < shape_.workers; ++n) s_.add_client();
    const std::size_t rounds = 1 + s_.pick(4);
    for (std::size_t n = 0; n < shape_.workers; ++n) {
        ++working_;
        const int client = static_cast<int>(s_.chance(80) ? n : s_.pick(shape_.workers));
        s_.spawn(s_.user_executor(), worker(client, n, rounds));
    }
    if (f.drops || f.expiries || f.operator_deletes || f.containers) s_.spawn(trouble(f));
    s_.run();
    end();
}

void barrier_scenario::run_all_orders(const explored_plan& p, explored what) {
    leaves_in_any_order_ = what == explored::entering;
    const auto enter_all = [&] {
        for (int n = 0; n < p.users; ++n) {
            ++working_;
            ++outside_;
            s_.spawn(once(n % 2, n));
        }
        for (s_.settle(); what == explored::leaving && outside_ > 0; s_.settle()) s_.step();
    };
    const auto delete_node = [this](std::size_t n) {
        const std::vector<std::string> nodes = checker_.standing();
        if (nodes.size() > n) s_.ensemble.operate(detail::remove_request{nodes[n], any_version});
    };
    if (what == explored::leaving)
        begin_exploring(s_, p, delete_node, enter_all);
    else
        begin_exploring(s_, p, delete_node), enter_all();
    s_.run();
    s_.explore(false);
    end();
}

asio::awaitable<void> barrier_scenario::once(int client, int number) {
    co_await attempt(client, std::to_string(number));
    --working_;
}

void barrier_scenario::end() {
    // Nothing happens any more: those that are left wait for members that do not come, and for nobody else.
    if (working_ > 0 && checker_.standing().size() >= shape_.members)
        throw violation("enough members wait, and nobody passes");
    if (working_ > entering_.size()) throw violation("somebody cannot leave");
    finishing_ = true;
    while (!entering_.empty()) {
        for (auto& [id, entering] : std::map(entering_)) {
            s_.note("gives up ", id);
            entering.cancel();
        }
        s_.run();
    }
    if (working_ > 0) throw violation("somebody has not ended");
    for (const auto& [path, node] : s_.ensemble.tree().nodes())
        if (parent_path(path) == barrier_directory && path != ready) throw violation("a node is left: " + path);
    // `ready` may be left over when members were killed, and then the next one removes it.
    const bool killed = !expired_.empty() || operator_was_here_;
    if (s_.ensemble.tree().find(ready) && !killed) throw violation("ready is left");
    s_.close();
}

}  // namespace zkasio::test
