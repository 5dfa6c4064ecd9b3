#include "worker.hpp"

#include "line_pipe.hpp"
#include "protocol.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace demo {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using asio::use_awaitable;

// The paths are long, and everybody knows them here.
std::string without_path(const zkasio::error& e) {
    const std::string text = e.what();
    const std::size_t behind = text.find(e.path()) + e.path().size() + 2;
    return e.path().empty() || behind > text.size() ? text : text.substr(behind);
}

class worker {
public:
    worker(asio::io_context& io, worker_options options)
        : options_(std::move(options)),
          nodes_{options_.root},
          io_(io),
          commands_(io.get_executor(), ::dup(STDIN_FILENO)),
          events_(io.get_executor(), ::dup(STDOUT_FILENO)),
          zk_(io.get_executor(), zkasio::client_options(options_.servers).session_timeout(options_.session_timeout)),
          lock_(zk_, nodes_.lock(), zkasio::mutex_options().data(options_.name)),
          one_ended_(io) {}

    asio::awaitable<void> serve();
    int status() const { return status_; }

private:
    asio::awaitable<void> obey();
    asio::awaitable<void> contend();
    asio::awaitable<void> use(zkasio::lock_guard& guard, clock::time_point asked);
    asio::awaitable<void> hold(zkasio::lock_guard& guard);
    asio::awaitable<void> commit_late(zkasio::lock_guard& guard);
    asio::awaitable<void> race();
    void prepare_race(const std::string& kind);
    asio::awaitable<void> tell_about_session();
    asio::awaitable<void> halt();
    void start(const std::function<asio::awaitable<void>()>& one);

    worker_options options_;
    nodes nodes_;
    asio::io_context& io_;
    line_reader commands_;
    line_writer events_;
    zkasio::client zk_;
    zkasio::mutex lock_;
    std::unique_ptr<zkasio::lockable> raced_for_;
    std::int64_t raced_ = 0;  // how often we got it
    std::deque<asio::cancellation_signal> contenders_;
    asio::steady_timer one_ended_;
    int running_ = 0;
    bool hold_next_ = false;
    bool stopping_ = false;
    int status_ = 0;
};

asio::awaitable<void> worker::serve() {
    asio::co_spawn(io_, events_.run(), asio::detached);
    std::string failed;
    try {
        co_await obey();
    } catch (const std::exception& e) {
        failed = e.what();
    }
    if (!failed.empty()) {
        status_ = 1;
        events_.send(event::note, failed);
    }
    co_await halt();
    co_await zk_.close();
    events_.finish();
}

asio::awaitable<void> worker::obey() {
    const zkasio::session session = co_await zk_.current_session();
    events_.send_now(event::ready, std::to_string(session.timeout().count()));
    asio::co_spawn(io_, tell_about_session(), asio::detached);
    for (;;) {
        const std::vector<std::string> lines = co_await commands_.read();
        for (const std::string& line : lines) {
            const message told = to_message(line);
            if (told.word == command::go) start([this] { return contend(); });
            if (told.word == command::hold) hold_next_ = true;
            if (told.word == command::race) {
                co_await halt();
                prepare_race(told.rest);
                start([this] { return race(); });
            }
            if (told.word == command::halt) {
                co_await halt();
                events_.send_now(event::raced, std::to_string(raced_));
            }
            if (told.word == command::stop) co_return;
        }
        if (lines.empty()) co_return;
    }
}

void worker::prepare_race(const std::string& kind) {
    raced_ = 0;
    if (kind == "mutex")
        raced_for_ = std::make_unique<zkasio::mutex>(zk_, nodes_.race(kind));
    else
        raced_for_ = std::make_unique<zkasio::cohort_mutex>(zk_, nodes_.race(kind));
}

void worker::start(const std::function<asio::awaitable<void>()>& one) {
    stopping_ = false;
    for (int i = 0; i < options_.coroutines; ++i) {
        auto ended = [this](std::exception_ptr failed) {
            --running_;
            if (failed) status_ = 1;
            one_ended_.cancel();
        };
        ++running_;
        asio::co_spawn(io_, one(), asio::bind_cancellation_slot(contenders_.emplace_back().slot(), ended));
    }
}

// What each of the coroutines does, over and over.
asio::awaitable<void> worker::contend() {
    while (!stopping_) {
        auto body = [this, asked = clock::now()](zkasio::lock_guard& guard) { return use(guard, asked); };
        std::error_code failed;
        std::string text;
        try {
            co_await lock_.with_lock(body);
        } catch (const std::system_error& e) {
            failed = e.code();
            text = e.what();
        }
        if (!failed || stopping_) continue;
        // The lock was lost, or the session before we got it: nothing to mourn, contend again.
        if (failed == zkasio::errc::lock_lost || failed == zkasio::errc::not_connected) continue;
        if (failed == zkasio::condition::session_ended || failed == zkasio::condition::retryable) continue;
        if (failed == zkasio::zk_errc::bad_version) {
            events_.send_now(event::violation, text);
            continue;
        }
        events_.send_now(event::note, text);
        status_ = 1;
        co_return;
    }
}

// The body, as long as the lock is ours.
asio::awaitable<void> worker::use(zkasio::lock_guard& guard, clock::time_point asked) {
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - asked);
    const bool to_hold = std::exchange(hold_next_, false);
    const std::int64_t token = guard.token().value();

    // Not stale, although any server may answer: ours has shown us that the holder before is gone, and so it has seen
    // everything that this holder wrote before it went.
    const zkasio::node_data ledger = co_await zk_.get(nodes_.ledger());
    if (const auto before = to_number(ledger.data); before >= token)
        events_.send_now(event::violation, fmt::format("token {} came after {}", token, before));

    zkasio::transaction entry;
    entry.set(nodes_.ledger(), std::to_string(token), ledger.stat.version);
    entry.set(nodes_.tally(options_.name), "");
    // The coordinator compares the books: from here on we want to know what became of it, even when told to stop.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    std::vector<zkasio::step_result> done;
    try {
        done = co_await guard.commit(entry);
    } catch (const zkasio::error& e) {
        if (e.outcome_unknown()) events_.send(event::uncertain, e.what());
        throw;
    }
    acquisition mine;
    mine.token = token;
    mine.position = done.front().new_stat->version;
    mine.waited = waited;
    events_.send(event::acquired, to_text(mine));
    if (to_hold) co_await hold(guard);
}

// Keeps the lock, until the library says that it is not ours any more (or the coordinator that it is over).
asio::awaitable<void> worker::hold(zkasio::lock_guard& guard) {
    asio::steady_timer for_ever(co_await asio::this_coro::executor, clock::time_point::max());
    co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
    events_.send_now(event::holding, std::to_string(guard.token().value()));
    std::error_code cancelled;
    co_await for_ever.async_wait(asio::redirect_error(use_awaitable, cancelled));
    if (stopping_) co_return;
    events_.send_now(event::body_cancelled, to_string(guard.reason()));
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await commit_late(guard);
}

// What a holder does that has been asleep for too long: it goes on writing.
asio::awaitable<void> worker::commit_late(zkasio::lock_guard& guard) {
    zkasio::transaction entry;
    entry.set(nodes_.ledger(), std::to_string(guard.token().value()));
    std::string refusal;
    try {
        co_await guard.commit(entry);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::errc::lock_lost) throw;
        refusal = without_path(e);
    }
    events_.send_now(refusal.empty() ? event::accepted : event::commit_refused, refusal);

    // The guard has looked at the clock and did not even ask. What if a holder only finds out when its request is on
    // the way? Send what commit() would have sent: ZooKeeper looks for the lock's node, and refuses.
    zkasio::transaction regardless;
    regardless.check(guard.path());
    regardless.append(entry);
    for (int attempt = 0; attempt < 50; ++attempt) {
        std::error_code answer;
        try {
            co_await zk_.multi(regardless);
        } catch (const zkasio::error& e) {
            answer = e.code();
            refusal = without_path(e);
        }
        if (!answer) events_.send_now(event::accepted, "by the server");
        if (answer == zkasio::zk_errc::no_node) events_.send_now(event::server_refused, refusal);
        if (!answer || answer == zkasio::zk_errc::no_node) co_return;
        asio::steady_timer pause(co_await asio::this_coro::executor, 100ms);  // it has just woken up: reconnecting
        co_await pause.async_wait(use_awaitable);
    }
}

// What each of them does in a race. How fast does a lock change hands when nobody writes under it?
asio::awaitable<void> worker::race() {
    auto count = [this](zkasio::lock_guard&) -> asio::awaitable<void> {
        ++raced_;
        co_return;
    };
    while (!stopping_) {
        try {
            co_await raced_for_->with_lock(count);
        } catch (const std::system_error&) {
            if (!stopping_) throw;
        }
    }
}

asio::awaitable<void> worker::tell_about_session() {
    const zkasio::session_events events = zk_.events();
    bool first = true;  // the state at the moment, no news
    for (;;) {
        zkasio::session_event e;
        try {
            e = co_await events.next();
        } catch (const zkasio::error&) {
            co_return;
        }
        if (e.state == zkasio::session_state::closed) co_return;
        if (!std::exchange(first, false))
            events_.send_now(event::note, fmt::format("{}: {}", to_string(e.state), e.reason));
    }
}

asio::awaitable<void> worker::halt() {
    stopping_ = true;
    for (asio::cancellation_signal& c : contenders_) c.emit(asio::cancellation_type::terminal);
    while (running_ > 0) {
        std::error_code woken;
        one_ended_.expires_at(clock::time_point::max());
        co_await one_ended_.async_wait(asio::redirect_error(use_awaitable, woken));
    }
    contenders_.clear();
}

}  // namespace

int run_worker(worker_options options) {
    // The coordinator ends its workers. If it is killed itself, the kernel does, also those that are stopped.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "zkasio_demo");  // it was started as "exe"
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);  // Ctrl-C goes to the whole group, but the coordinator decides
    asio::io_context io(1);
    worker w(io, std::move(options));
    asio::co_spawn(io, w.serve(), asio::detached);
    io.run();
    return w.status();
}

}  // namespace demo
