#include "simulation/partition_scenario.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <asio/cancellation_state.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

namespace zkasio::test {
namespace {

using namespace std::chrono_literals;

const std::string party = "/p/party", locks = "/p/locks", commits = "/commits";

void create_node(sim_ensemble& ensemble, const std::string& path) {
    detail::create_request r;
    r.path = path;
    r.acl = open_acl();
    ensemble.operate(r);
}

// A body runs, held or not: no other body of the same member works on this partition.
class only_body_of {
public:
    only_body_of(std::shared_ptr<std::set<std::string>> bodies, std::string partition)
        : bodies_(std::move(bodies)), partition_(std::move(partition)) {
        if (!bodies_->insert(partition_).second) throw violation("two bodies of one member work on " + partition_);
    }
    ~only_body_of() { bodies_->erase(partition_); }
    only_body_of(const only_body_of&) = delete;
    only_body_of& operator=(const only_body_of&) = delete;

private:
    const std::shared_ptr<std::set<std::string>> bodies_;
    const std::string partition_;
};

}  // namespace

// ----------------------------------------------------------------------------------------------------------- checker

partition_checker::work::work(partition_checker& checker, const held_partition& what)
    : working_(checker.working_), at_(working_->insert(working_->end(), &what)) {
    if (!checker.counts(what)) return;
    std::int64_t& highest = checker.highest_[what.name()];
    if (what.token().value() <= highest) throw violation(what.name() + " is given a token that is not the largest one");
    highest = what.token().value();
    checker.check();
}

std::string partition_checker::commit_name(const held_partition& p, std::size_t number) {
    return std::to_string(p.token().value()) + '-' + std::to_string(number);
}

void partition_checker::committed(const sim_txn& txn) {
    for (const sim_change& c : txn.changes) {
        const std::string parent(parent_path(c.path));
        if (parent == commits_ && txn.session != 0) {
            const std::int64_t token = std::stoll(std::string(node_name(c.path)));
            if (!owners_.contains(token)) throw violation("a commit of an owner that has lost its lock: " + c.path);
        }
        if (parent_path(parent) != locks_) continue;
        const std::int64_t czxid = c.node.stat.czxid;
        if (c.what == sim_change::kind::created) owners_.insert(czxid);
        if (c.what != sim_change::kind::removed) continue;
        owners_.erase(czxid);
        if (txn.session == 0 || (txn.ends_session && cut_short_now_)) cut_short_.insert(czxid);
    }
}

void partition_checker::check() const {
    std::map<std::string, const held_partition*> held;
    for (const held_partition* p : *working_)
        if (counts(*p) && !held.emplace(p->name(), p).second)
            throw violation(p->name() + " has two owners: " + std::to_string(p->token().value()) + " and " +
                            std::to_string(held[p->name()]->token().value()));
}

// ---------------------------------------------------------------------------------------------------------- members

partition_scenario::partition_scenario(simulation& s, const partition_faults& f)
    : s_(s), faults_(f), time_(s), checker_(locks, commits) {
    s_.ensemble.on_commit = [this](const sim_txn& txn) { checker_.committed(txn); };
    s_.on_idle = [this] {
        time_.note_connections();
        checker_.check();
    };
}

partition_scenario::~partition_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = [] {};
}

void partition_scenario::add_member(int client) {
    partitioner_options options;
    options.id('m' + std::to_string(++next_id_)).settle(200ms + std::chrono::milliseconds(s_.pick(1000)));
    if (s_.chance(50)) options.settle_at_most(2s);
    if (s_.chance(30)) options.stop_margin(std::min(std::chrono::milliseconds(s_.pick(1000)), s_.most_stop_margin()));
    const bool in_turn = s_.chance(other_versions_);
    if (in_turn) options.assignment(&assign_in_turn);
    partitioner divides(s_.client_number(client), "/p", partitions_, std::move(options));
    member& m = members_.emplace_back(std::move(divides), in_turn);
    s_.note(m.divides.id(), " of client ", std::to_string(client), in_turn ? " of another version" : "", " comes");
    m.task.emplace(s_.user_executor(client), run_member(client, &m));
}

asio::awaitable<void> partition_scenario::come_and_go(std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(200));
        const int client = some_client();
        add_member(client);
        const auto m = std::prev(members_.end());
        if (rounds == 1 && s_.chance(70)) break;  // this one stays
        co_await s_.pause(s_.pick(s_.chance(70) ? 600 : 60));
        co_await end_member(m);
    }
    --working_;
}

asio::awaitable<void> partition_scenario::end_member(std::list<member>::iterator m) {
    s_.note(m->divides.id(), " goes");
    const bool by_itself = m->task->ended();
    m->task->cancel();
    const std::exception_ptr failed = co_await m->task->end();
    try {
        if (!failed) throw violation("run() has completed");
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        if (by_itself || e.code() != condition::cancelled) throw violation(std::string("run() fails: ") + e.what());
    }
    s_.note(m->divides.id(), " has gone");
    if (!m->divides.owned().empty()) throw violation("a member that has gone owns " + m->divides.owned().front());
    members_.erase(m);
}

asio::awaitable<void> partition_scenario::run_member(int client, member* m) {
    auto body = [&](held_partition& p) { return work(client, m, p); };
    co_await m->divides.run(body);
}

asio::awaitable<void> partition_scenario::work(int client, member* m, held_partition& p) {
    const only_body_of alone(m->bodies, p.name());
    s_.note("client ", std::to_string(client), " works on ", p.name(), ", ", std::to_string(p.token().value()));
    const partition_checker::work mine(checker_, p);
    co_await s_.pause(s_.pick(20), client);
    co_await work_somehow(client, p);
    s_.note("client ", std::to_string(client), " has worked on ", p.name());
}

asio::awaitable<void> partition_scenario::work_somehow(int client, held_partition& p) {
    const std::size_t what = s_.pick(calm_ ? 3 : 8);
    if (what == 0) co_return;  // the partition is kept
    if (what >= 6) {
        co_await time_.wait(std::chrono::milliseconds(s_.pick(4000)));
        throw error(zk_errc::connection_loss, "work", p.name());  // the partition is given up, and asked for again
    }
    if (what >= 4) {
        const std::string path = join_path(commits, partition_checker::commit_name(p, ++commits_));
        transaction steps;
        steps.create(path);
        co_await p.commit(std::move(steps));
        s_.note("committed ", path);
    }
    if (what == 3) {  // ends late
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await time_.wait(std::chrono::milliseconds(s_.pick(8000)));
        co_await s_.pause(s_.pick(20), client);
        co_return;
    }
    co_await time_.wait(1h);
}

// ------------------------------------------------------------------------------------------------------------ faults

void partition_scenario::delete_some_lock() {
    const std::vector<std::string> names = s_.children(locks);
    if (!names.empty()) s_.delete_child_of(join_path(locks, names[s_.pick(names.size())]));
}

asio::awaitable<void> partition_scenario::trouble(std::size_t rounds) {
    for (; rounds > 0 && working_ > 1; --rounds) {
        co_await s_.pause(5 + s_.pick(80));
        const int victim = some_client();
        const std::size_t what = s_.pick(5);
        if (what == 0 && faults_.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && faults_.outages) time_.cut_off(victim, std::chrono::milliseconds(s_.pick(14'000)));
        if (what == 2 && faults_.expiries) {
            checker_.sessions_are_cut_short(true);
            s_.ensemble.expire(victim);
            checker_.sessions_are_cut_short(false);
        }
        if (what == 3 && faults_.operator_deletes_members) s_.delete_child_of(party);
        if (what == 4 && faults_.operator_deletes_locks) delete_some_lock();
    }
    --working_;
}

// ------------------------------------------------------------------------------------------------------------- a run

std::vector<std::string> partition_scenario::ids() const {
    std::vector<std::string> all;
    for (const member& m : members_) all.push_back(m.divides.id());
    std::sort(all.begin(), all.end());
    return all;
}

// Each member owns what is assigned to it, and nothing else; nobody else is in the queues, and all members are seen.
bool partition_scenario::is_divided(const group_observer& observer) const {
    const std::vector<std::string> all = ids();
    const bool in_turn = std::any_of(members_.begin(), members_.end(), [](const member& m) { return m.is_in_turn; });
    for (const member& m : members_) {
        const auto assign = in_turn ? &assign_in_turn : &assign_by_rendezvous;
        if (m.divides.state() != partitioner_state::acquired) return false;
        if (m.divides.owned() != assign(m.divides.id(), all, partitions_)) return false;
    }
    for (const std::string& partition : partitions_)
        if (s_.children(join_path(locks, partition)).size() != 1) return false;
    const group_view seen = observer.members();
    const bool all_seen = std::equal(seen.members.begin(), seen.members.end(), all.begin(), all.end(),
                                     [](const member_info& m, const std::string& id) { return m.id == id; });
    return seen.current && all_seen && s_.children(party).size() == all.size();
}

asio::awaitable<void> partition_scenario::finish() {
    const group_observer observer(s_.client_number(some_client()), party, group_names::kazoo_shallow_party);
    while (working_ > 0) co_await s_.pause(20);
    s_.note("all is calm");
    calm_ = true;
    time_.end_outages();
    time_.be_steady();
    if (members_.empty()) {
        const int client = some_client();
        add_member(client);
    }
    for (int pauses = 0; !is_divided(observer); ++pauses) {
        if (pauses == 500) throw violation("the partitions are not divided");
        co_await s_.pause(20);
        const auto failed = std::find_if(members_.begin(), members_.end(), [](const member& m) {
            return m.task->ended();
        });
        if (failed != members_.end()) co_await end_member(failed);  // throws the reason
    }
    while (!members_.empty()) co_await end_member(members_.begin());
    finished_ = true;
}

void partition_scenario::run_at_random() {
    s_.let_users_be_late();
    create_node(s_.ensemble, commits);
    for (std::size_t n = 1 + s_.pick(5); n > 0; --n) partitions_.push_back('x' + std::to_string(n));
    std::sort(partitions_.begin(), partitions_.end());
    if (s_.chance(40)) other_versions_ = 30;
    const std::size_t clients = 2 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n)
        s_.add_client(faults_.drops_lose ? suspension_policy::lose : suspension_policy::keep);
    for (std::size_t n = 1 + s_.pick(4); n > 0; --n, ++working_) s_.spawn(come_and_go(1 + s_.pick(4)));
    ++working_;
    s_.spawn(trouble(10 + s_.pick(30)));
    s_.spawn(finish());
    time_.pass_while([this] { return !finished_; });
    s_.run();
    if (!finished_) throw violation("a user has not ended");
    if (!checker_.idle()) throw violation("a body has not ended");
    for (const std::string& partition : partitions_)
        if (!s_.children(join_path(locks, partition)).empty()) throw violation("a lock is left");
    if (!s_.children(party).empty()) throw violation("a member is left");
    s_.close();
}

}  // namespace zkasio::test
