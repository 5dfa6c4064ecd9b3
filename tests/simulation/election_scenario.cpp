#include "simulation/election_scenario.hpp"

#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::test {
namespace {

std::string text_of(const leader_view& view) {
    if (!view.leader) return std::string(to_string(view.state));
    return std::to_string(view.leader->token.value()) + ' ' + view.leader->data.value_or("-");
}

std::string text_of(const election_truth& truth) {
    return truth.token == 0 ? "nobody" : std::to_string(truth.token) + ' ' + truth.data;
}

election_truth truth_in(const leader_view& view) {
    if (view.state == leader_state::unknown) throw violation("an observer does not know although no time passes");
    if (!view.leader) return {};
    return {view.leader->token.value(), view.leader->data.value_or("?")};
}

// What the leader has proclaimed, or else its id.
std::string said_in(const sim_node& directory, std::string_view name, const sim_node& leader) {
    return directory_note::parse(directory.data).proclaimed_by(name).value_or(leader.data);
}

asio::awaitable<void> ended_too_early(running observer) {
    const std::exception_ptr failed = co_await observer.end();
    if (failed) std::rethrow_exception(failed);
    throw violation("an observer has ended");
}

}  // namespace

// ----------------------------------------------------------------------------------------------------- checker

// Those of the same client that are leaving may stand before it.
bool election_checker::is_first(const leadership& leader) const {
    const sim_node* mine = ensemble_.tree().find(leader.path());
    const std::vector<std::string> all = nodes();
    return mine && std::all_of(all.begin(), all.end(), [&](const std::string& path) {
               const node_stat& other = ensemble_.tree().find(path)->stat;
               return other.czxid >= mine->stat.czxid || other.ephemeral_owner == mine->stat.ephemeral_owner;
           });
}

election_checker::term::term(election_checker& checker, const leadership& leader)
    : terms_(checker.terms_), at_(terms_->insert(terms_->end(), {&leader, false})) {
    const std::int64_t token = leader.token().value();
    const bool there = checker.ensemble_.tree().find(leader.path()) != nullptr;
    at_->doubted = checker.operator_was_here_ && !checker.is_first(leader);
    if (there && !at_->doubted && token <= checker.highest_token_)
        throw violation("the token " + std::to_string(token) + " was given after " +
                        std::to_string(checker.highest_token_));
    if (!at_->doubted) checker.highest_token_ = std::max(checker.highest_token_, token);
    checker.check();
}

// By age, and not by number: these have to agree.
election_truth election_checker::now() const {
    election_truth truth;
    for (const std::string& path : nodes()) {
        const sim_node& node = *ensemble_.tree().find(path);
        if (truth.token == 0 || node.stat.czxid < truth.token)
            truth = {node.stat.czxid, said_in(*ensemble_.tree().find(election_directory), node_name(path), node)};
    }
    return truth;
}

std::vector<std::string> election_checker::nodes() const {
    std::vector<std::string> all;
    if (!ensemble_.tree().find(election_directory)) return all;
    for (const std::string& name : ensemble_.tree().children(election_directory))
        all.push_back(join_path(election_directory, name));
    return all;
}

void election_checker::committed(const sim_txn& txn) {
    if (txn.session == 0 && !txn.changes.empty()) operator_was_here_ = true;
    if (election_truth truth = now(); truth != history_.back()) history_.push_back(std::move(truth));
}

void election_checker::check_terms(bool doubted_ones_too) const {
    const leadership* leads = nullptr;
    for (const auto& [leader, doubted] : *terms_) {
        if (doubted && !doubted_ones_too) continue;
        // Whose node has gone will learn it; a lease, which in a simulation does not end, bounds how late.
        if (!leader->held() || !ensemble_.tree().find(leader->path())) continue;
        if (leads) throw violation(leads->path() + " and " + leader->path() + " lead at the same time");
        leads = leader;
    }
}

std::size_t election_checker::losses() const {
    return static_cast<std::size_t>(
        std::count_if(terms_->begin(), terms_->end(), [](const held_term& t) { return !t.leader->held(); }));
}

void election_checker::told(int number, const leader_view& view) {
    observed& o = observers_[number];
    const election_truth truth = truth_in(view);
    if (o.any && view == o.last) throw violation("observer " + std::to_string(number) + " tells the same twice");
    const auto from = history_.begin() + static_cast<std::ptrdiff_t>(o.any ? o.at + 1 : 0);
    const auto found = std::find(from, history_.end(), truth);
    if (found == history_.end())
        throw violation("observer " + std::to_string(number) + " tells what was not true since then: " + text_of(view));
    o.at = static_cast<std::size_t>(found - history_.begin());
    o.any = true;
    o.last = view;
}

void election_checker::check_quiet(const std::set<int>& observers) {
    check_terms(true);
    for (const int number : observers) {
        const auto o = observers_.find(number);
        if (o == observers_.end()) throw violation("observer " + std::to_string(number) + " has told nothing");
        if (truth_in(o->second.last) != history_.back())
            throw violation("observer " + std::to_string(number) + " believes \"" + text_of(o->second.last) +
                            "\", true is \"" + text_of(history_.back()) + '"');
    }
}

// ---------------------------------------------------------------------------------------------------- scenario

election_scenario::election_scenario(simulation& s) : s_(s), checker_(s.ensemble) {
    s_.ensemble.on_commit = [this](const sim_txn& txn) { checker_.committed(txn); };
    s_.losses = [this] { return checker_.losses(); };
    s_.on_idle = [this] { checker_.check(); };
    s_.on_quiet = [this] { checker_.check_quiet(attentive_); };
}

election_scenario::~election_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.losses = [] { return std::size_t{0}; };
    s_.on_idle = s_.on_quiet = [] {};
}

leader_election election_scenario::election_of(int client, std::string id) const {
    leader_election_options options;
    options.id(std::move(id));
    return {s_.client_number(client), election_directory, std::move(options)};
}

// What a lost answer and a lost leadership may fail with; anything else is told by the attempt.
asio::awaitable<void> election_scenario::proclaim(leadership& leader, std::string id) {
    std::error_code code;
    try {
        co_await leader.proclaim(id + " proclaims");
    } catch (const error& e) {
        if (e.code() != condition::retryable && e.code() != errc::lock_lost) throw;
        code = e.code();
    }
    s_.note("proclaim ", id, ": ", code ? code.message() : "done");
    if (code == errc::lock_lost && leader.held()) throw violation(id + " failed to proclaim, and still leads");
}

asio::awaitable<void> election_scenario::serve(int client, leadership& leader, std::string id) {
    s_.seen_by_all();
    const election_checker::term here(checker_, leader);
    s_.note(id, " leads");
    co_await s_.pause(s_.pick(s_.chance(70) ? 4 : 30), client);
    if (s_.chance(40)) co_await proclaim(leader, id);
    co_await s_.pause(s_.pick(4), client);
    s_.seen_by_all();
    s_.note(id, " has served");
}

asio::awaitable<void> election_scenario::campaign(int client, std::string id) {
    leadership leader = co_await election_of(client, id).campaign();
    co_await serve(client, leader, id);
    if (s_.chance(50)) co_await leader.resign();
}

asio::awaitable<void> election_scenario::lead(int client, std::string id) {
    std::size_t terms = 0;
    const std::size_t most = 1 + s_.pick(3);
    struct enough {};
    auto term = [&](leadership& leader) -> asio::awaitable<void> {
        co_await serve(client, leader, id);
        if (s_.chance(20)) co_await leader.resign();
        if (++terms >= most) throw enough();
    };
    try {
        co_await election_of(client, id).lead(term, lead_options().requeue());
    } catch (const enough&) {
        s_.note(id, " has served enough terms");
    }
}

asio::awaitable<void> election_scenario::attempt(int client, std::string id, asio::awaitable<void> what) {
    running task(s_.user_executor(client), std::move(what));
    const auto cancelled = std::make_shared<bool>(false);
    if (s_.chance(30))
        s_.after(s_.pick(s_.chance(50) ? 12 : 120), [this, task, cancelled, id]() mutable {
            if (task.ended()) return;
            s_.note("cancel ", id);
            *cancelled = true;
            task.cancel();
        });
    const std::exception_ptr failed = co_await task.end();
    if (!failed) co_return;
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        // A term that is served by hand ends with its session; lead() would stand again.
        const bool lost = e.code() == errc::lock_lost || e.code() == condition::session_ended;
        if (!lost && !(*cancelled && e.code() == condition::cancelled)) throw violation(id + " failed: " + e.what());
    }
}

asio::awaitable<void> election_scenario::candidate(int client, std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(25));
        const std::string id = std::to_string(client) + '.' + std::to_string(next_id_++);
        if (s_.chance(50))
            co_await attempt(client, id, lead(client, id));
        else
            co_await attempt(client, id, campaign(client, id));
    }
    --working_;
}

asio::awaitable<void> election_scenario::observe(int client, int number) {
    const leader_observer observer = election_of(client, {}).observe();
    for (;;) {
        const leader_view view = co_await observer.next();
        s_.note("observer ", std::to_string(number), " tells: ", text_of(view));
        checker_.told(number, view);
        if (!s_.chance(20)) continue;
        attentive_.erase(number);
        co_await s_.pause(s_.pick(30));
        attentive_.insert(number);
    }
}

asio::awaitable<void> election_scenario::trouble(faults f) {
    for (int n = 0; n < 40 && working_ > 0; ++n) {
        co_await s_.pause(5 + s_.pick(60));
        const int victim = static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients())));
        const std::size_t what = s_.pick(f.directory_deletes ? 5 : 4);
        const std::vector<std::string> nodes = checker_.nodes();
        if (what == 0 && f.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && f.expiries && s_.chance(50)) s_.ensemble.expire(victim);
        if (what == 2 && f.operator_deletes && !nodes.empty())
            s_.ensemble.operate(detail::remove_request{nodes[s_.pick(nodes.size())], any_version});
        if (what == 3 && f.containers) s_.ensemble.remove_empty_containers();
        if (what == 4) {
            for (const std::string& path : nodes) s_.ensemble.operate(detail::remove_request{path, any_version});
            s_.ensemble.operate(detail::remove_request{election_directory, any_version});
        }
    }
}

void election_scenario::begin_near_the_highest_number() {
    detail::create_request r;
    r.path = std::string(parent_path(election_directory));
    s_.ensemble.operate(r);
    r.path = election_directory;
    s_.ensemble.operate(r);
    s_.ensemble.set_next_sequence(election_directory, static_cast<std::int32_t>(2147483647 - s_.pick(40)));
}

void election_scenario::run_at_random(const faults& f) {
    s_.let_users_be_late();
    const std::size_t clients = 2 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n)
        s_.add_client(f.drops_lose ? suspension_policy::lose : suspension_policy::keep);
    if (s_.chance(25)) begin_near_the_highest_number();
    for (int number = 0, all = 1 + static_cast<int>(s_.pick(3)); number < all; ++number) {
        attentive_.insert(number);
        observers_.emplace_back(s_.user_executor(), observe(static_cast<int>(s_.pick(clients)), number));
    }
    const std::size_t candidates = 2 + s_.pick(s_.chance(80) ? 6 : 20), rounds = 1 + s_.pick(4);
    for (std::size_t n = 0; n < candidates; ++n) {
        ++working_;
        s_.spawn(s_.user_executor(), candidate(static_cast<int>(s_.pick(clients)), rounds));
    }
    if (f.drops || f.expiries || f.operator_deletes || f.directory_deletes || f.containers) s_.spawn(trouble(f));
    s_.run();
    end();
}

void election_scenario::run_all_orders(const explored_plan& p, observers there) {
    begin_exploring(s_, p, [this](std::size_t n) {
        const std::vector<std::string> nodes = checker_.nodes();
        if (nodes.size() > n) s_.ensemble.operate(detail::remove_request{nodes[n], any_version});
    });
    int candidates = p.users;
    if (there == observers::one) {
        const int client = --candidates % 2;
        attentive_.insert(0);
        observers_.emplace_back(s_.user_executor(client), observe(client, 0));
    }
    for (int n = 0; n < candidates; ++n) {
        ++working_;
        s_.spawn(once(n % 2, std::to_string(n % 2) + '.' + std::to_string(n)));
    }
    s_.run();
    s_.explore(false);
    end();
}

asio::awaitable<void> election_scenario::once(int client, std::string id) {
    co_await attempt(client, id, one_term(client, id));
    --working_;
}

// Resigns by destroying the leadership.
asio::awaitable<void> election_scenario::one_term(int client, std::string id) {
    const leadership leader = co_await election_of(client, id).campaign();
    s_.seen_by_all();
    const election_checker::term here(checker_, leader);
    s_.note(id, " leads");
    co_await s_.pause(0, client);
    s_.seen_by_all();
    s_.note(id, " has served");
}

// Where an operator has deleted a node, only a heartbeat tells, and none is due: the sessions end instead.
void election_scenario::end() {
    for (int n = 0; n < s_.clients() && working_ > 0; ++n) {
        s_.ensemble.expire(n);
        s_.run();
    }
    if (working_ > 0 || !checker_.idle()) throw violation("a candidate has not ended");
    checker_.check_quiet(attentive_);
    if (!checker_.nodes().empty()) throw violation("a node is left: " + checker_.nodes().front());
    for (running& o : observers_) {
        if (o.ended()) s_.spawn(ended_too_early(o));
        o.cancel();
    }
    s_.run();
    s_.close();
}

}  // namespace zkasio::test
