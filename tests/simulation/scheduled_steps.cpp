// The part of simulation that has a scheduler, and tells it what each step had to do with.

#include "simulation/simulation.hpp"

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace zkasio::test {
namespace {

using kind = sim_ensemble::step::kind;

constexpr int most_told_steps = 2000;
constexpr int all_answers = 4 * 100, first_event = 1000, events_per_client = 1000;

int number_of(const sim_ensemble::step& s) { return static_cast<int>(s.what) * 100 + s.client; }
int number_of(int client, int event) { return first_event + (client + 2) * events_per_client + event; }
int client_of_event(int step) { return (step - first_event) / events_per_client - 2; }
kind kind_of(int step) { return step >= all_answers ? kind::deliver : static_cast<kind>(step / 100); }

std::uint32_t bit(int client) {
    if (client == simulation::nobody) return 0;
    return client == simulation::everybody ? ~std::uint32_t{0} : std::uint32_t{1} << client;
}

// What the outcome of a request depends on. A write, and a search for children, depend on the parent: it may be
// missing.
void remember(footprint& f, const std::string& request) {
    std::istringstream words(request);
    std::string operation;
    words >> operation;
    if (operation == "sync") return;
    const bool node_only = operation == "get" || operation == "exists";
    for (std::string path; words >> path;) {
        if (!path.starts_with('/')) continue;
        if (path.ends_with('?')) path.pop_back();                // a watch of a missing node
        if (path.ends_with("/*")) path.resize(path.size() - 2);  // a watch of children
        f.read.push_back("n" + path);
        if (node_only) continue;
        f.read.push_back("c" + path);
        f.read.push_back("n" + std::string(parent_path(path)));
    }
}

void remember(footprint& f, const sim_txn& txn, const std::set<std::string>& never_listed) {
    if (txn.ends_session) f.seen_by_all = true;
    for (const sim_change& c : txn.changes) {
        f.changed.push_back("n" + c.path);
        if (c.what != sim_change::kind::created && c.what != sim_change::kind::removed) continue;
        const std::string parent(parent_path(c.path));
        if (!never_listed.contains(parent)) f.changed.push_back("c" + parent);
    }
}

// What is under way now: `gone` is no longer, and what is new was put there by `step`.
void follow(std::deque<int>& line, std::size_t gone, std::size_t now, int step) {
    for (; gone > 0 && !line.empty(); --gone) line.pop_front();
    while (line.size() > now) line.pop_front();
    while (line.size() < now) line.push_back(step);
}

}  // namespace

bool dependent(const footprint& a, const footprint& b) noexcept {
    if ((a.clients & b.clients) || (a.answers & b.answers)) return true;
    // What users are told is checked against the tree.
    const auto sees = [](const footprint& one, const footprint& other) {
        return one.seen_by_all && (other.seen_by_all || !other.changed.empty());
    };
    const auto meet = [](const std::vector<std::string>& some, const std::vector<std::string>& changed) {
        return std::any_of(some.begin(), some.end(), [&](const auto& path) {
            return std::find(changed.begin(), changed.end(), path) != changed.end();
        });
    };
    return sees(a, b) || sees(b, a) || meet(a.changed, b.changed) || meet(a.read, b.changed) || meet(b.read, a.changed);
}

void simulation::seen_at(const std::string& path) {
    seen_.read.insert(seen_.read.end(), {"n" + path, "c" + path});
    seen_.changed.push_back("u" + path);
}

void simulation::seed_ids(int client) {
    detail::random_engine().seed((static_cast<std::uint64_t>(client + 3) << 32) + ++turns_of_[client]);
}

void simulation::add_event(int client, std::function<void()> what, bool any_time) {
    const int cause = !exploring_ ? -1 : taking_ ? told_steps_ : told_steps_ - 1;
    possible_events_.push_back({client, events_of_[client]++, cause, any_time, std::move(what)});
}

simulation::surroundings simulation::around(int client) const {
    return {ensemble.requests_under_way(client), ensemble.answers_under_way(client), ensemble.has_connection(client)};
}

footprint simulation::footprint_of(int step, const std::string& request, const std::vector<surroundings>& before,
                                   std::size_t transactions) {
    footprint f = std::exchange(seen_, {});
    const bool is_event = step >= first_event;
    const int client = is_event ? client_of_event(step) : step % 100;
    const kind k = is_event ? kind::deliver : kind_of(step);
    if (is_event || k == kind::deliver) f.clients = bit(client);
    const bool many = !is_event && step >= all_answers;
    if (many) f.answers = bit(client);  // those that are under way
    if (client == nobody) f.seen_by_all = true;  // an operator, whose choice depends on the tree
    if (k == kind::connect) f.answers = f.clients = bit(client);
    if (k == kind::apply) {
        remember(f, request);
        f.answers = bit(client);
    }
    const std::vector<sim_txn>& all = ensemble.transactions();
    for (std::size_t i = transactions; i < all.size(); ++i) remember(f, all[i], never_listed_);
    for (int n = 0; n < clients(); ++n) {
        lines& l = lines_[static_cast<std::size_t>(n)];
        const surroundings& was = before[static_cast<std::size_t>(n)];
        const surroundings is = around(n);
        const bool ours = !is_event && n == client;
        const std::size_t served = ours && k == kind::apply;
        const std::size_t delivered = !ours || k != kind::deliver ? 0 : many ? was.answers : 1;
        if (ours && k == kind::apply && !l.requests.empty()) f.cause = l.requests.front();
        if (ours && k == kind::deliver && !l.answers.empty()) f.cause = many ? l.answers.back() : l.answers.front();
        if (ours && k == kind::connect) f.cause = l.touched;
        if (is.answers + delivered > was.answers) f.answers |= bit(n);
        // The connection has gone, or another one has come: whatever was under way.
        const bool some_gone = is.requests + served < was.requests || is.answers + delivered < was.answers;
        if (some_gone || is.connected != was.connected)
            f.answers |= bit(n), f.clients |= bit(n);
        follow(l.requests, served, is.requests, told_steps_);
        follow(l.answers, delivered, is.answers, told_steps_);
        if (f.clients & bit(n)) l.touched = told_steps_;
    }
    return f;
}

bool simulation::step_as_told() {
    if (clients_run_) settle();
    on_idle();
    if (exploring_ && told_steps_ > most_told_steps) throw violation("it goes on for ever");
    lines_.resize(static_cast<std::size_t>(clients()));
    for (int n = 0; n < clients(); ++n) {  // what was begun before the first step
        lines& l = lines_[static_cast<std::size_t>(n)];
        const surroundings is = around(n);
        follow(l.requests, 0, is.requests, told_steps_ - 1);
        follow(l.answers, 0, is.answers, told_steps_ - 1);
    }
    ensemble.list_steps(possible_);
    if (possible_.empty() && late_ == 0) on_quiet();
    std::vector<turn> turns;
    for (const sim_ensemble::step& s : possible_) turns.push_back({number_of(s), number_of(s)});
    for (const event& e : possible_events_) {
        const int number = number_of(e.client, e.number);
        turns.push_back({number, number, e.any_time});
    }
    for (std::size_t i = 0; answers_together_ && i < possible_.size(); ++i)
        if (possible_[i].what == kind::deliver && ensemble.answers_under_way(possible_[i].client) > 1)
            turns.push_back({all_answers + possible_[i].client, turns[i].party});
    if (turns.empty()) return false;
    const std::size_t chosen = exploring_ ? scheduler_->choose(turns) : 0;
    std::vector<surroundings> before;
    for (int n = 0; n < clients(); ++n) before.push_back(around(n));
    const std::size_t transactions = ensemble.transactions().size(), lost = losses();
    seen_ = {};
    taking_ = true;
    int cause = -1;
    const turn taken = turns[chosen];
    const bool is_event = taken.step >= first_event;
    const int taker = is_event ? client_of_event(taken.step) : taken.step % 100;
    // The ids that a client draws depend on its own turns only.
    if (is_event || kind_of(taken.step) == kind::deliver) seed_ids(taker);
    std::string request;
    if (!is_event) {
        const auto one = std::find_if(possible_.begin(), possible_.end(),
                                      [&](const sim_ensemble::step& p) { return number_of(p) == taken.party; });
        if (one->what == kind::apply) request = ensemble.next_request(one->client);
        const std::size_t times = taken.step == taken.party ? 1 : ensemble.answers_under_way(one->client);
        for (std::size_t n = 0; n < times; ++n) ensemble.take(*one);
    } else {
        const auto at = possible_events_.begin() + static_cast<std::ptrdiff_t>(chosen - possible_.size());
        const event happens = std::move(*at);
        possible_events_.erase(at);
        note("event ", std::to_string(happens.number), " of client ", std::to_string(happens.client));
        cause = happens.cause;
        happens.what();
    }
    settle();
    taking_ = false;
    if (losses() != lost) seen_by_all();
    footprint f = footprint_of(taken.step, request, before, transactions);
    if (is_event) f.cause = cause;
    if (exploring_) {
        scheduler_->taken(std::move(f));
        ++told_steps_;
    } else {
        told_steps_ = 0;
        for (lines& l : lines_) {
            l.touched = -1;
            std::fill(l.requests.begin(), l.requests.end(), -1);
            std::fill(l.answers.begin(), l.answers.end(), -1);
        }
    }
    return true;
}

}  // namespace zkasio::test
