#include <zkasio/testing/detail/driver.hpp>

#include <zkasio/detail/handles/access.hpp>
#include <zkasio/printable.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/system_executor.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace zkasio::testing_detail {
namespace {

using duration = driver::duration;
using namespace std::chrono_literals;

constexpr duration never = duration::max();
constexpr duration to_unwind = 60s;        // for a task that is cancelled because it has not ended
constexpr std::size_t most_busy = 1'000'000;
constexpr std::size_t log_lines = 20;

std::string in_seconds(duration d) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f s", std::chrono::duration<double>(d).count());
    return text;
}

duration later(duration now, duration by) { return by > never - now ? never : now + by; }

struct task_state {
    asio::cancellation_signal signal;
    bool ended = false;
    std::exception_ptr failed;
};

detail::random_engines seeded(std::uint64_t seed) {
    return {std::mt19937_64(seed), std::mt19937_64(seed + 1)};
}

}  // namespace

driver::driver(std::uint64_t seed)
    : seed_(seed),
      before_(detail::exchange_random_engines(seeded(seed))),
      random_(seed),
      never_out_of_work_(std::in_place, io_.get_executor()),
      wait_([this](std::chrono::milliseconds until_timer) { wait(until_timer); }) {
    servers_.session_timeout = 0ms;
    servers_.least_timeout = 4s;
    servers_.most_timeout = 40s;
    servers_.clock = [] {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return std::int64_t(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    };
    servers_.max_request = 1'048'575;
    servers_.pick = [this](std::size_t below) { return static_cast<std::size_t>(random_() % below); };
    servers_.on_log = [this](std::string line) { write_down(std::move(line)); };
    servers_.on_commit = [this](const sim_txn& txn) { note_ttl_nodes(txn); };
    servers_.on_resumed = [this](std::int64_t session) {
        if (const auto silent = silent_since_.find(session); silent != silent_since_.end()) silent->second = now();
    };
}

driver::~driver() { detail::exchange_random_engines(std::move(before_)); }

// ---------------------------------------------------------------------------------------------------- clients

client driver::add_client(asio::any_io_executor executor, client_options options) {
    if (!executor || &executor.context() != &io_)
        throw error(errc::invalid_argument, "fake_ensemble::client", {},
                    "the executor is not of this ensemble: it has to be made of context() or get_executor()");
    // A numeric address: no name is looked up.
    options.servers("127.0.0.1:2181" + detail::chroot_of(options));
    // The threads of the system executor have the real time.
    if (options.observe_on() == asio::any_io_executor(asio::system_executor()))
        options.observer(options.observer(), io_.get_executor());
    const client made = detail::client_over(std::move(executor), std::move(options),
                                            servers_.factory(static_cast<int>(clients_.size())));
    clients_.push_back(detail::access::core_of(made));
    return made;
}

int driver::number_of(const client& zk, std::string_view asked_by) const {
    const std::shared_ptr<const void> core = detail::access::core_of(zk);
    const auto it = std::find_if(clients_.begin(), clients_.end(), [&](const std::weak_ptr<const void>& one) {
        return core && !one.owner_before(core) && !core.owner_before(one);
    });
    if (it == clients_.end())
        throw error(errc::invalid_argument, asked_by, {}, "the client is not one of this ensemble");
    return static_cast<int>(it - clients_.begin());
}

// ---------------------------------------------------------------------------------------------------- running

void driver::run(asio::awaitable<void> task, duration limit) {
    if (running_) throw std::logic_error("fake_ensemble::run() was called while it runs: what runs already may wait");
    const auto s = std::make_shared<task_state>();
    const auto at_end = [s](std::exception_ptr e) {
        s->ended = true;
        s->failed = std::move(e);
    };
    asio::co_spawn(io_, std::move(task), asio::bind_cancellation_slot(s->signal.slot(), at_end));
    const auto ended = [s] { return s->ended; };
    try {
        drive(ended, limit);
    } catch (...) {
        // Other work on the loop has thrown. The task must not continue after the caller has left run().
        const std::exception_ptr thrown = std::current_exception();
        s->signal.emit(asio::cancellation_type::terminal);
        try {
            drive(ended, to_unwind);
        } catch (...) {  // the first exception is thrown
        }
        std::rethrow_exception(thrown);
    }
    if (!s->ended) {
        std::string text = "fake_ensemble::run(): what runs has not ended: " + why_ended_ + "\n" + state();
        s->signal.emit(asio::cancellation_type::terminal);
        drive(ended, to_unwind);
        if (!s->ended) text += "\nAnd it did not end when it was cancelled.";
        throw std::runtime_error(text);
    }
    if (s->failed) std::rethrow_exception(s->failed);
}

void driver::run_for(duration time) {
    if (running_) throw std::logic_error("fake_ensemble::run_for() was called while it runs: wait for a timer");
    drive([] { return false; }, time);
}

void driver::run_dry(duration limit) {
    if (running_) throw std::logic_error("fake_ensemble::run_dry() was called while it runs");
    never_out_of_work_.reset();
    std::exception_ptr thrown;
    try {
        drive([] { return false; }, limit);
    } catch (...) {  // thrown by a handler
        thrown = std::current_exception();
    }
    never_out_of_work_.emplace(io_.get_executor());
    if (thrown) std::rethrow_exception(thrown);
    if (!why_ended_.empty())
        throw std::runtime_error("fake_ensemble::run_dry(): something is left: " + why_ended_ + "\n" + state());
}

void driver::drive(const std::function<bool()>& done, duration limit) {
    if (!clock_.is_of_this_thread())
        throw std::logic_error("fake_ensemble: it was made by another thread, and belongs to it, as its time does");
    until_ = later(now(), limit);
    why_ended_.clear();
    busy_ = 0;
    running_ = true;
    clock_.instead_of_waiting(&wait_);
    std::exception_ptr thrown;
    try {
        io_.restart();
        while (!done() && io_.run_one() != 0) {
        }
    } catch (...) {  // thrown by a handler
        thrown = std::current_exception();
    }
    clock_.instead_of_waiting(nullptr);
    running_ = false;
    if (failed_) thrown = std::exchange(failed_, nullptr);
    if (thrown) std::rethrow_exception(thrown);
}

// Called instead of the loop's wait for its next timer. No exception may pass through Asio.
void driver::wait(duration until_timer) {
    if (until_timer == 0ns) {
        if (++busy_ < most_busy) return;
        why_ended_ = "the loop is never idle, so that no time passes (something goes on and on without waiting)";
        return io_.stop();
    }
    busy_ = 0;
    if (now() >= until_) {
        why_ended_ = "it is " + in_seconds(now()) + " since the beginning, and that is the limit";
        return io_.stop();
    }
    try {
        hear();
        const duration timer = until_timer < 0ns ? never : now() + until_timer;
        pass_to_next_event(std::min(timer, until_));
        if (now() < timer) happen();
    } catch (...) {
        failed_ = std::current_exception();
        io_.stop();
    }
}

void driver::pass_to_next_event(duration limit) {
    servers_.list_steps(steps_);
    if (steps_.empty())
        step_at_ = never;
    else if (step_at_ == never)
        step_at_ = later(now(), step_time);
    duration next = std::min({step_at_, next_expiry(), containers_at_, limit});
    for (const auto& [client, lost] : silent_until_) next = std::min(next, lost);
    if (next > now()) clock_.pass(next - now());
}

// The servers hear of the sessions for the last time when the loop stops: no client sends a ping from then on.
void driver::stall(duration time) {
    if (!clock_.is_of_this_thread())
        throw std::logic_error("fake_ensemble::stall(): another thread, whose time this is not");
    write_down("the loop stands still for " + in_seconds(time));
    const duration until = later(now(), time);
    hear();
    for (const std::int64_t session : std::exchange(heard_now_, {})) silent_since_.try_emplace(session, now());
    while (now() < until) {
        for (const auto& [session, timeout] : servers_.session_timeouts()) silent_since_.try_emplace(session, now());
        pass_to_next_event(until);
        if (now() < until) happen();
    }
}

// A session stays alive while its connection is up: the library sends pings.
// Mostly nothing has changed since the last turn, and only the time of all that are heard goes on.
void driver::hear() {
    const auto& sessions = servers_.session_timeouts();
    const std::int64_t newest = sessions.empty() ? 0 : sessions.rbegin()->first;
    hearing_.clear();
    servers_.list_heard(hearing_);
    if (hearing_ == heard_now_ && sessions.size() == known_sessions_ && newest == newest_session_) {
        heard_at_ = now();
        return;
    }
    for (const std::int64_t session : heard_now_) silent_since_.try_emplace(session, heard_at_);
    heard_now_.swap(hearing_);
    heard_at_ = now();
    for (const std::int64_t session : heard_now_) silent_since_.erase(session);
    // A session whose connection broke at once is not in the list: the servers have heard of its beginning only.
    const std::set<std::int64_t> heard(heard_now_.begin(), heard_now_.end());
    for (const auto& [session, timeout] : sessions)
        if (!heard.contains(session)) silent_since_.try_emplace(session, now());
    std::erase_if(silent_since_, [&](const auto& one) { return !sessions.contains(one.first); });
    known_sessions_ = sessions.size();
    newest_session_ = newest;
}

duration driver::next_expiry() const {
    duration first = never;
    for (const auto& [session, since] : silent_since_) first = std::min(first, expiry_of(session, since));
    return first;
}

duration driver::expiry_of(std::int64_t session, duration silent_since) const {
    const auto& sessions = servers_.session_timeouts();
    const auto it = sessions.find(session);
    return it == sessions.end() ? never : silent_since + it->second;  // end(): it has ended since hear()
}

// Carries out all that is due.
void driver::happen() {
    std::vector<std::int64_t> expired;
    for (const auto& [session, since] : silent_since_)
        if (expiry_of(session, since) <= now()) expired.push_back(session);
    for (const std::int64_t session : expired) {
        write_down("session " + session_id_text(session) + " has not been heard of for its timeout, and expires");
        servers_.expire_session(session);
        silent_since_.erase(session);
    }
    std::vector<int> lost;
    for (const auto& [client, when] : silent_until_)
        if (when <= now()) lost.push_back(client);
    for (const int client : lost) {
        silent_until_.erase(client);
        servers_.end_silence(client);
        servers_.cut_off(client);
    }
    if (containers_at_ <= now()) {
        containers_at_ = later(now(), container_check_);
        servers_.remove_empty_containers();
        remove_unchanged_ttl_nodes();
    }
    if (step_at_ <= now()) take_a_step();
}

void driver::note_ttl_nodes(const sim_txn& txn) {
    for (const sim_change& c : txn.changes) {
        if (c.node.ttl == 0ms || c.what == sim_change::kind::acl_set) continue;
        if (c.what == sim_change::kind::removed)
            ttl_nodes_.erase(c.path);
        else
            ttl_nodes_[c.path] = now();
    }
}

// As in ZooKeeper: the time to live is counted from the last write of the node's data, and children keep the node.
void driver::remove_unchanged_ttl_nodes() {
    const std::map<std::string, duration> all = ttl_nodes_;
    for (const auto& [path, written] : all) {
        const sim_node* node = servers_.tree().find(path);
        if (node && node->stat.num_children == 0 && now() - written > node->ttl) {
            write_down("the time to live of " + path + " has passed");
            servers_.operate(detail::remove_request{path});
        }
    }
}

void driver::take_a_step() {
    step_at_ = never;
    servers_.list_steps(steps_);
    if (steps_.empty()) return;
    const sim_ensemble::step chosen = steps_[servers_.pick(steps_.size())];
    if (chosen.what == sim_ensemble::step::kind::apply && loses_answer_of_next_request(chosen.client)) {
        servers_.drop_connection(chosen.client, 1, servers_.answers_under_way(chosen.client));
        return;
    }
    if (loss > 0 && servers_.pick(100) < static_cast<std::size_t>(loss) && servers_.drop_connection(chosen.client))
        return;
    servers_.take(chosen);
}

bool driver::loses_answer_of_next_request(int client) {
    const std::string next = servers_.next_request(client);
    const auto armed = std::find_if(answers_to_lose_.begin(), answers_to_lose_.end(), [&](const auto& one) {
        return one.first == client && next.starts_with(one.second);
    });
    if (armed == answers_to_lose_.end()) return false;
    answers_to_lose_.erase(armed);
    return true;
}

// ----------------------------------------------------------------------------------------------------- faults

// The library gives a connection up if nothing has arrived for two thirds of the session timeout.
void driver::silence(int client) {
    if (servers_.is_silent(client) || servers_.is_cut_off(client)) return;
    write_down("silence around " + std::to_string(client));
    servers_.silence(client);
    silent_until_[client] = later(now(), servers_.granted_timeout(client) * 2 / 3);
}

void driver::let_in(int client) {
    write_down("let in " + std::to_string(client));
    servers_.let_in(client);
    servers_.end_silence(client);
    silent_until_.erase(client);
}

void driver::check_containers_every(duration d) {
    container_check_ = d;
    containers_at_ = later(now(), d);
}

// ------------------------------------------------------------------------------------------------------ words

void driver::write_down(std::string line) {
    line.insert(0, in_seconds(now()) + ' ');
    if (log) log(line);
    log_.push_back(std::move(line));
    if (log_.size() > log_lines) log_.pop_front();
}

std::string driver::state() const {
    std::ostringstream text;
    text << "seed " << seed_ << '\n';
    for (int n = 0; n < static_cast<int>(clients_.size()); ++n) {
        if (clients_[static_cast<std::size_t>(n)].expired()) continue;
        text << "client " << n << ": "
             << (servers_.has_connection(n) ? "connected"
                 : servers_.is_cut_off(n)   ? "held down"
                                            : "not connected");
        if (servers_.is_silent(n)) text << ", silenced";
        text << ", session 0x" << std::hex << servers_.session_of(n) << std::dec;
        if (!servers_.alive(servers_.session_of(n))) text << " (over)";
        if (servers_.requests_under_way(n) > 0) text << ", asks " << servers_.next_request(n);
        if (servers_.watches_of(n) > 0) text << ", watches" << servers_.watched(n);
        text << '\n';
    }
    text << "nodes:";
    std::size_t shown = 0;
    for (const auto& [path, node] : servers_.tree().nodes())
        if (path != "/" && ++shown <= 20) text << ' ' << path;
    text << (shown > 20 ? " ...\n" : "\n") << "what happened last, by number of client:\n";
    for (const std::string& line : log_) text << "  " << line << '\n';
    return text.str();
}

}  // namespace zkasio::testing_detail
