#include "coordinator.hpp"

#include "dashboard.hpp"
#include "report.hpp"
#include "screen.hpp"
#include "team.hpp"

#include <zkasio/client.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>

namespace demo {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using asio::use_awaitable;
using state = member::state;

std::chrono::microseconds since(clock::time_point t) {
    return std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - t);
}

class coordinator {
public:
    coordinator(asio::io_context& io, run_options options)
        : io_(io),
          options_(std::move(options)),
          nodes_{"/zkasio-demo/" + zkasio::new_protection_id().substr(0, 8)},
          zk_(io.get_executor(), zkasio::client_options(options_.servers).connection_timeout(5s)),
          signals_(io, SIGINT, SIGTERM, SIGHUP),
          team_(
              io, options_, nodes_, [this](const std::string& text) { say(text); },
              [this](const std::string& why) { abort(why, 1); }) {}

    int run();

private:
    // What happens, in order.
    asio::awaitable<void> script();
    asio::awaitable<void> prepare();
    asio::awaitable<member*> start_worker();
    asio::awaitable<void> kill_a_holder();
    asio::awaitable<void> stop_a_holder();
    asio::awaitable<void> compare_the_books();
    asio::awaitable<void> clean_up();

    // What goes on meanwhile.
    asio::awaitable<void> refresh();
    asio::awaitable<void> count_queue();
    void abort(std::string why, int status);

    asio::awaitable<void> wait_until(clock::time_point t);
    void say(const std::string& text) {
        screen_.say(fmt::format("  {:5.1f} s  {}", std::chrono::duration<double>(since(began_)).count(), text));
    }
    std::size_t handoffs_per_second(clock::duration time) const {
        const auto count = static_cast<double>(team_.acquisitions().size());
        return static_cast<std::size_t>(count / std::chrono::duration<double>(time).count());
    }

    asio::io_context& io_;
    run_options options_;
    nodes nodes_;
    zkasio::client zk_;
    asio::signal_set signals_;
    asio::cancellation_signal stop_;  // the script
    screen screen_;
    team team_;
    report report_;
    rate speed_;
    clock::time_point began_ = clock::now();
    clock::duration outages_{};  // the lock was held by somebody who could not pass it on
    std::int64_t queued_ = 0;
    bool prepared_ = false;
    bool cleaning_up_ = false;
    std::string aborted_;
    int status_ = 0;
};

// ---------------------------------------------------------------------------------------------------- the script

asio::awaitable<void> coordinator::script() {
    co_await prepare();
    for (int i = 0; i < options_.processes; ++i) co_await start_worker();

    screen_.say(fmt::format("{} processes with {} coroutines each contend for {}", options_.processes,
                            options_.coroutines, nodes_.lock()));
    began_ = clock::now();
    for (member& m : team_.members()) team_.go(m);
    asio::co_spawn(io_, refresh(), asio::detached);
    asio::co_spawn(io_, count_queue(), asio::detached);

    co_await wait_until(began_ + options_.duration / 5);
    co_await kill_a_holder();
    co_await wait_until(began_ + options_.duration / 2);
    co_await stop_a_holder();
    co_await wait_until(began_ + options_.duration);
    const auto took = clock::now() - began_;
    std::vector<std::string> raced;
    const std::size_t overall = handoffs_per_second(took), moving = handoffs_per_second(took - outages_);

    for (const std::string_view kind : race_kinds) {
        constexpr std::chrono::seconds time = 2s;
        say(fmt::format("nothing to do under the lock: {}", kind));
        const std::int64_t times = co_await team_.race(kind, time);
        raced.push_back(fmt::format("{} of a {}", to_text(static_cast<std::size_t>(times / time.count())), kind));
    }
    co_await team_.end();
    const history& all = team_.acquisitions();
    report_.figure("acquisitions", to_text(all.size()));
    report_.figure("hand-offs per second",
                   fmt::format("{} without the two outages, {} with them", to_text(moving), to_text(overall)));
    report_.figure("with nothing to do", fmt::format("{} per second", fmt::join(raced, ", ")));
    report_.figure("wait for the lock", fmt::format("p50 {}, p99 {}", to_text(all.wait_percentile(0.5)),
                                                    to_text(all.wait_percentile(0.99))));
    co_await compare_the_books();
}

asio::awaitable<void> coordinator::prepare() {
    co_await zk_.connected();
    // Ephemeral nodes in containers: they go with us, however we end.
    zkasio::create_options ours;
    ours.mode(zkasio::create_mode::ephemeral).parents(zkasio::missing_parents::create_container);
    co_await zk_.create(nodes_.ledger(), "0", ours);
    prepared_ = true;
}

asio::awaitable<member*> coordinator::start_worker() {
    const std::string name = fmt::format("process-{}", team_.members().size() + 1);
    zkasio::create_options ours;
    ours.mode(zkasio::create_mode::ephemeral);
    co_await zk_.create(nodes_.tally(name), "", ours);
    co_return co_await team_.start(name);
}

asio::awaitable<void> coordinator::kill_a_holder() {
    member* const victim = co_await team_.a_holder();
    const auto killed = clock::now();
    victim->what = state::killed;
    victim->child.signal(SIGKILL);
    say(fmt::format("SIGKILL for {}, which holds the lock (token {})", victim->name, victim->held_token));

    member* const replacement = co_await start_worker();
    team_.go(*replacement);
    say(fmt::format("{} takes its place", replacement->name));

    const auto went_on = [this, victim] { return team_.acquisitions().latest_token() > victim->held_token; };
    const bool passed_on = co_await team_.until(went_on, killed + 3 * victim->session_timeout + 5s);
    outages_ += since(killed);
    const std::string after = to_text(since(killed));
    say(fmt::format("its session is over: the lock moves again, after {}", after));
    report_.check("killed holder: the others went on", passed_on, "after " + after);
}

asio::awaitable<void> coordinator::stop_a_holder() {
    member* const victim = co_await team_.a_holder();
    const auto stopped = clock::now();
    victim->what = state::stopped;
    victim->child.signal(SIGSTOP);
    say(fmt::format("SIGSTOP for {}, which holds the lock (token {})", victim->name, victim->held_token));

    const auto went_on = [this, victim] { return team_.acquisitions().latest_token() > victim->held_token; };
    const bool passed_on = co_await team_.until(went_on, stopped + 3 * victim->session_timeout + 5s);
    outages_ += since(stopped);
    const std::string after = to_text(since(stopped));
    say(fmt::format("its session is over: the lock moves again, after {}", after));
    report_.check("stopped holder: the others went on", passed_on, "after " + after);

    co_await wait_until(std::max(clock::now(), stopped + victim->session_timeout) + 1s);
    const std::string asleep = to_text(since(stopped));
    const std::int64_t acquisitions_before = victim->acquisitions;
    const auto woken = clock::now();
    victim->what = state::contending;
    victim->child.signal(SIGCONT);
    say(fmt::format("SIGCONT for {}, after {}", victim->name, asleep));

    const auto cancelled = [victim] { return !victim->body_cancelled.empty(); };
    const bool was_cancelled = co_await team_.until(cancelled, woken + 10s);
    const std::string then = to_text(since(woken));
    report_.check("its body was cancelled", was_cancelled,
                  was_cancelled ? fmt::format("{} after it woke up from {} (session timeout {}): {}", then, asleep,
                                              to_text(victim->session_timeout), victim->body_cancelled)
                                : "within 10 s: no");

    const auto answered = [victim] { return !victim->server_refused.empty() || !victim->accepted.empty(); };
    co_await team_.until(answered, woken + 20s);
    report_.check("its late commit was refused", !victim->commit_refused.empty() && victim->accepted.empty(),
                  victim->accepted.empty() ? victim->commit_refused : victim->accepted);
    report_.check("and by ZooKeeper, when sent regardless", !victim->server_refused.empty(), victim->server_refused);

    const auto is_back = [=] { return victim->acquisitions > acquisitions_before; };
    const bool back = co_await team_.until(is_back, std::max(began_ + options_.duration, woken + 10s));
    report_.check("it went on with a new session", back, back ? "after " + to_text(since(woken)) : "");
}

asio::awaitable<void> coordinator::compare_the_books() {
    co_await zk_.sync(nodes_.root);
    const zkasio::node_data ledger = co_await zk_.get(nodes_.ledger());

    const history& all = team_.acquisitions();
    std::string disorder = all.disorder().value_or("");
    if (!team_.violations().empty()) disorder = team_.violations().front();
    report_.check("tokens rose strictly", disorder.empty() && all.size() > 0,
                  disorder.empty() ? "in the order in which ZooKeeper has applied the commits" : disorder);

    std::int64_t tallied = 0, unreported = 0;
    bool equal = true;
    for (const member& m : team_.members()) {
        const zkasio::node_data tally = co_await zk_.get(nodes_.tally(m.name));
        const std::int64_t missing = tally.stat.version - m.acquisitions;
        tallied += tally.stat.version;
        unreported += missing;
        // A process that was killed may have committed more than it had time to tell.
        if (missing < 0 || (missing > m.uncertain && m.what != state::killed)) equal = false;
    }
    const auto in_zookeeper = static_cast<std::size_t>(ledger.stat.version);
    std::string detail = fmt::format("{} in ZooKeeper, {} reported", to_text(in_zookeeper), to_text(all.size()));
    if (unreported > 0) detail += fmt::format(", {} by the killed process, too late to report", unreported);
    report_.check("the count is that of the successful commits", equal && ledger.stat.version == tallied, detail);

    const member& replacement = team_.members().back();
    const auto acquisitions = static_cast<std::size_t>(replacement.acquisitions);
    report_.check("the killed process was replaced", acquisitions > 0,
                  fmt::format("{}: {} acquisitions", replacement.name, to_text(acquisitions)));

    std::int64_t left = 0;
    if (const auto directory = co_await zk_.exists(nodes_.lock())) left = directory->num_children;
    report_.check("no lock node is left over", left == 0, left == 0 ? "" : fmt::format("{} are", left));
}

// Whatever has happened: no process, no node.
asio::awaitable<void> coordinator::clean_up() {
    cleaning_up_ = true;
    co_await team_.put_down();
    try {
        std::function<asio::awaitable<void>()> remove = [this] { return zk_.remove_recursive(nodes_.root); };
        if (prepared_) co_await zkasio::run_with_deadline(zkasio::boot_clock::now() + 2s, remove);
    } catch (const std::exception&) {
        // The server may be gone too. What is ours goes with our session.
    }
    co_await zk_.close();
    io_.stop();
}

// -------------------------------------------------------------------------------------------------- meanwhile

asio::awaitable<void> coordinator::refresh() {
    const auto pause = screen_.is_terminal() ? 200ms : 1000ms;
    asio::steady_timer next(io_, began_);
    while (!cleaning_up_) {
        const auto now = clock::now();
        speed_.sample(now, team_.acquisitions().size());
        for (member& m : team_.members()) m.speed.sample(now, static_cast<std::size_t>(m.acquisitions));
        const std::string head = headline(now - began_, team_.acquisitions(), speed_.per_second(), queued_);
        if (screen_.is_terminal())
            screen_.show(dashboard(head, team_.members()));
        else
            screen_.say(head);
        next.expires_at(next.expiry() + pause);
        co_await next.async_wait(use_awaitable);
    }
}

asio::awaitable<void> coordinator::count_queue() {
    asio::steady_timer next(io_);
    while (!cleaning_up_) {
        try {
            const auto directory = co_await zk_.exists(nodes_.lock());
            queued_ = directory ? directory->num_children : 0;
        } catch (const zkasio::error&) {
            // No connection: an old figure is good enough.
        }
        next.expires_after(300ms);
        co_await next.async_wait(use_awaitable);
    }
}

asio::awaitable<void> coordinator::wait_until(clock::time_point t) {
    const auto never = [] { return false; };
    co_await team_.until(never, t);
}

void coordinator::abort(std::string why, int status) {
    if (cleaning_up_ || !aborted_.empty()) return;
    aborted_ = std::move(why);
    status_ = status;
    stop_.emit(asio::cancellation_type::terminal);
}

int coordinator::run() {
    signals_.async_wait([this](std::error_code failed, int number) {
        if (!failed) abort("interrupted", 128 + number);
    });
    auto ended = [this](std::exception_ptr failed) {
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            if (aborted_.empty()) aborted_ = e.what();  // else that is why
            status_ = std::max(status_, 1);
        }
        screen_.show({});
        asio::co_spawn(io_, clean_up(), asio::detached);
    };
    asio::co_spawn(io_, script(), asio::bind_cancellation_slot(stop_.slot(), ended));
    io_.run();

    if (!aborted_.empty()) {
        fmt::print(stderr, "error: {}\n", aborted_);
        return status_;
    }
    for (const std::string& line : report_.lines()) screen_.say(line);
    return report_.passed() ? 0 : 1;
}

}  // namespace

int run_coordinator(run_options options) {
    std::signal(SIGPIPE, SIG_IGN);  // a worker that has just ended
    asio::io_context io(1);
    coordinator c(io, std::move(options));
    return c.run();
}

}  // namespace demo
