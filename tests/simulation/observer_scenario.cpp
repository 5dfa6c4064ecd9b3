#include "simulation/observer_scenario.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::test {
namespace {

const std::string observed_directory = "/elections/observed";
constexpr auto session_length = passing_time::session_length;
constexpr std::chrono::nanoseconds patience = session_length / 3;

// Each candidate has an id of its own.
std::string latch_name(std::size_t n) {
    const std::string number = std::to_string(100'000'000'000 + n);
    return "/_c_11111111-2222-4333-8444-" + number + "-latch-";
}

void create_node(sim_ensemble& ensemble, const std::string& path, std::string data, create_mode mode) {
    detail::create_request r;
    r.path = path;
    r.data = std::move(data);
    r.mode = mode;
    ensemble.operate(r);
}

std::string words_of(const leader_view& view) {
    return view.leader ? std::to_string(view.leader->token.value()) : std::string(to_string(view.state));
}

}  // namespace

observer_scenario::observer_scenario(simulation& s) : s_(s), time_(s) {
    s_.ensemble.on_commit = [this](const sim_txn&) {
        if (truth t = now(); t != history_.back()) history_.push_back(std::move(t));
    };
    time_.on_note = [this] { note_connections(); };
    s_.on_idle = [this] { time_.note_connections(); };
    s_.on_quiet = [this] { check_quiet(); };
}

observer_scenario::~observer_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = s_.on_quiet = [] {};
}

// ------------------------------------------------------------------------------------------------- candidates

// The eldest first: it leads.
std::vector<std::string> observer_scenario::candidates() const {
    std::vector<std::string> all;
    if (!s_.ensemble.tree().find(observed_directory)) return all;
    for (const std::string& name : s_.ensemble.tree().children(observed_directory))
        all.push_back(join_path(observed_directory, name));
    const auto age = [this](const std::string& path) { return s_.ensemble.tree().find(path)->stat.czxid; };
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return age(a) < age(b); });
    return all;
}

observer_scenario::truth observer_scenario::now() const {
    const std::vector<std::string> all = candidates();
    if (all.empty()) return {};
    const sim_node& first = *s_.ensemble.tree().find(all.front());
    const auto note = directory_note::parse(s_.ensemble.tree().find(observed_directory)->data);
    return {first.stat.czxid, note.proclaimed_by(node_name(all.front())).value_or(first.data)};
}

// Every other leader does it as those of zkasio 0.2: it writes into its node.
void observer_scenario::proclaim(const std::string& leader) {
    std::string text = std::to_string(++proclaimed_);
    const bool as_before = (leader[leader.find("-latch-") - 1] - '0') % 2 == 0;
    if (as_before) {
        s_.ensemble.operate(detail::set_request{leader, std::move(text), any_version});
        return;
    }
    directory_note note;
    note.leader = node_name(leader);
    note.proclaimed = std::move(text);
    s_.ensemble.operate(detail::set_request{observed_directory, note.text(), any_version});
}

void observer_scenario::change() {
    const std::vector<std::string> all = candidates();
    const std::size_t what = s_.pick(10);
    if (all.empty() || what < 3) {  // it stands behind the others
        create_node(s_.ensemble, std::string(parent_path(observed_directory)), {}, create_mode::persistent);
        create_node(s_.ensemble, observed_directory, {}, create_mode::persistent);
        create_node(s_.ensemble, observed_directory + latch_name(++candidates_), "id",
                    create_mode::persistent_sequential);
    } else if (what < 7) {  // the leader is killed
        s_.ensemble.operate(detail::remove_request{all.front(), any_version});
    } else if (what < 8) {
        proclaim(all.front());
    } else if (what < 9) {
        s_.ensemble.operate(detail::remove_request{all.back(), any_version});
    } else {
        for (const std::string& path : all) s_.ensemble.operate(detail::remove_request{path, any_version});
        s_.ensemble.operate(detail::remove_request{observed_directory, any_version});
    }
}

asio::awaitable<void> observer_scenario::elect(std::size_t changes) {
    for (; changes > 0; --changes) {
        co_await s_.pause(1 + s_.pick(30));
        change();
    }
}

// -------------------------------------------------------------------------------------------------- observers

// What is told is looked at in the turn of the coroutine that has asked.
asio::awaitable<void> observer_scenario::ask(observed* o) {
    o->waits = true;
    o->asked_in_time = connected(o->client);
    const leader_view view = co_await o->observer->next();
    o->waits = false;
    told(*o, view);
}

asio::awaitable<void> observer_scenario::observe(observed* o) {
    while (!over_) {
        o->next.emplace(s_.user_executor(), ask(o));
        if (s_.chance(10)) s_.after(s_.pick(40), [next = *o->next]() mutable { next.cancel(); });
        const std::exception_ptr failed = co_await o->next->end();
        o->waits = false;
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            if (e.code() != condition::cancelled) throw violation("an observer fails: " + e.code().message());
        }
        if (s_.chance(15)) co_await s_.pause(s_.pick(60));
    }
}

void observer_scenario::told_unknown(const observed& o) const {
    if (o.last && o.last->state == leader_state::unknown)
        throw violation("an observer says twice that it does not know");
    // A late one counts from the turn in which it has heard of the loss, and misses a connection that was short.
    if (s_.users_may_be_late()) return;
    if (connected(o.client)) throw violation("an observer does not know although there is a connection");
    const duration since = last_connected_[static_cast<std::size_t>(o.client)];
    // Asked too late, it does not know since when there is no connection.
    if (!o.asked_in_time) return;
    if (time_.now() < since + patience) throw violation("an observer says too early that it does not know");
}

void observer_scenario::told(observed& o, const leader_view& view) {
    s_.note("the observer of client ", std::to_string(o.client), " tells: ", words_of(view));
    if (view.state == leader_state::unknown) {
        told_unknown(o);
        o.last = view;
        return;
    }
    // After it did not know, it tells also what it has told before that.
    const bool again = !o.last || o.last->state == leader_state::unknown;
    truth t;
    if (view.leader) t = {view.leader->token.value(), view.leader->data.value_or("?")};
    const auto from = history_.begin() + static_cast<std::ptrdiff_t>(again ? o.at : o.at + 1);
    const auto found = std::find(from, history_.end(), t);
    if (found == history_.end()) throw violation("an observer tells what was not true since then: " + words_of(view));
    o.at = static_cast<std::size_t>(found - history_.begin());
    o.last = view;
}

// ------------------------------------------------------------------------------------------------------- time

void observer_scenario::note_connections() {
    for (int n = 0; n < s_.clients(); ++n)
        if (connected(n)) last_connected_[static_cast<std::size_t>(n)] = time_.now();
}

// A late one says so later, see told_unknown().
void observer_scenario::check_cut_off() const {
    if (s_.users_may_be_late()) return;
    for (const observed& o : observers_) {
        const duration since = last_connected_[static_cast<std::size_t>(o.client)];
        const bool unknown = o.last && o.last->state == leader_state::unknown;
        if (o.waits && !connected(o.client) && time_.now() > since + patience && !unknown)
            throw violation("an observer of client " + std::to_string(o.client) + " that is cut off does not say so");
    }
}

void observer_scenario::check_quiet() const {
    for (const observed& o : observers_) {
        if (!o.waits || !connected(o.client) || s_.ensemble.is_cut_off(o.client)) continue;
        const truth t = history_.back();
        const bool right = o.last && o.last->state != leader_state::unknown && history_[o.at] == t;
        if (!right)
            throw violation("an observer believes \"" + (o.last ? words_of(*o.last) : "nothing") + "\", true is " +
                            std::to_string(t.token));
    }
}

void observer_scenario::cut_off(int client, bool expiries) {
    const auto most = static_cast<std::size_t>((expiries ? 2 : 1) * session_length / std::chrono::milliseconds(1));
    if (!s_.ensemble.is_cut_off(client)) time_.cut_off(client, std::chrono::milliseconds(s_.pick(most)));
}

// Time passes between two steps. Timers that are due, and those that follow from them, have their turns before
// anything else happens.
void observer_scenario::tick(std::size_t more, bool expiries) {
    time_.pass(std::chrono::milliseconds(s_.pick(s_.chance(80) ? 1500 : 12'000)));
    for (int turns = 0; turns < 4; ++turns) s_.after(0, [] {});
    s_.after(0, [this] { check_cut_off(); });
    if (more == 0 && !time_.somebody_is_cut_off()) return;
    if (more > 0 && s_.chance(30)) {
        const int victim = static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients())));
        s_.after(1 + s_.pick(8), [this, victim, expiries] { cut_off(victim, expiries); });
    }
    s_.after(1 + s_.pick(20), [this, more, expiries] { tick(more > 0 ? more - 1 : 0, expiries); });
}

void observer_scenario::open(int clients) {
    for (int n = 0; n < clients; ++n) {
        s_.add_client();
        last_connected_.push_back(time_.now());
    }
    for (std::size_t observers = 1 + s_.pick(3); observers > 0; --observers) {
        observed& o = observers_.emplace_back(static_cast<int>(s_.pick(static_cast<std::size_t>(clients))));
        o.observer.emplace(s_.client_number(o.client), observed_directory);
        s_.spawn(observe(&o));
    }
}

void observer_scenario::run_at_random(bool expiries) {
    s_.let_users_be_late();
    for (std::size_t changes = s_.pick(4); changes > 0; --changes) change();
    open(1 + static_cast<int>(s_.pick(2)));
    s_.spawn(elect(5 + s_.pick(30)));
    tick(10 + s_.pick(40), expiries);
    s_.run();
    check_quiet();
    time_.pass(2 * session_length);
    over_ = true;
    for (observed& o : observers_) o.next->cancel();
    s_.run();
    for (observed& o : observers_) o.observer.reset();
    s_.run();
    s_.close();
}

}  // namespace zkasio::test
