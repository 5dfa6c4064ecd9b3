#include "simulation/consume_scenario.hpp"

#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace zkasio::test {
namespace {

using namespace std::chrono_literals;

queue_paths paths_of(const queue_layout& layout) {
    if (layout.kind() == queue_kind::kazoo_locking)
        return {"/q/entries", "/q/later", "/q/dead", "/q/taken", "/q/receipts", false};
    const bool tells_times = layout.kind() == queue_kind::curator_delay;
    return {"/q", "/q-later", "/q-dead", "/q-taken", "/q-receipts", tells_times};
}

asio::awaitable<void> fail_with(std::exception_ptr e) {
    std::rethrow_exception(e);
    co_return;
}

}  // namespace

consume_scenario::consume_scenario(simulation& s, const consume_faults& f) : s_(s), faults_(f), time_(s) {
    s_.on_idle = [this] {
        time_.note_connections();
        checker_->check();
    };
}

consume_scenario::~consume_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = [] {};
}

void consume_scenario::choose_options() {
    const std::size_t layout = s_.pick(4);
    if (layout == 0) options_.layout(queue_layout::curator_delay());
    if (layout == 1) options_.layout(queue_layout::curator_priority());
    if (s_.chance(60)) options_.most_deliveries(1 + static_cast<int>(s_.pick(3)));
    if (s_.chance(25)) options_.most_items(1 + s_.pick(6));
    at_ = paths_of(options_.layout());
    checker_.emplace(s_.ensemble, at_, options_.most_deliveries());
    s_.ensemble.on_commit = [this](const sim_txn& txn) { checker_->committed(txn); };
}

work_queue consume_scenario::queue_of(int client) const { return {s_.client_number(client), "/q", options_}; }

// ----------------------------------------------------------------------------------------------------------- putting

asio::awaitable<void> consume_scenario::produce(std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(40));
        co_await put(some_client());
    }
    --working_;
}

asio::awaitable<void> consume_scenario::put(int client) {
    put_options how;
    if (s_.chance(50)) how.delay(std::chrono::milliseconds(s_.pick(15'000)));
    if (options_.layout().kind() != queue_kind::curator_delay) how.priority(static_cast<int>(s_.pick(3)));
    std::vector<std::string> ids;
    for (std::size_t n = s_.chance(70) ? 1 : 2 + s_.pick(5); n > 0; --n) ids.push_back(new_id());
    for (const std::string& id : ids) {
        s_.note("put ", id, ", due in ", std::to_string(how.delay().count()));
        checker_->puts(id, time_.server_time() + how.delay().count());
    }
    const auto o = std::make_shared<outcome>();
    co_await perhaps_cancelled(client, put_some(queue_of(client), ids, how), o, 20);
    if (o->session_expired && !o->unknown) throw violation("a put does not go on in the next session");
    for (const std::string& id : ids) {
        if (o->told)
            checker_->was_put(id);
        else if (!o->unknown)
            checker_->was_not_put(id);
    }
}

asio::awaitable<void> consume_scenario::put_some(work_queue q, std::vector<std::string> ids, put_options how) {
    std::vector<std::string> items;
    for (const std::string& id : ids) items.push_back(item_checker::data_of(id));
    if (items.size() == 1)
        co_await q.put(std::move(items.front()), how);
    else
        co_await q.put_all(std::move(items), how);
}

// --------------------------------------------------------------------------------------------------------- consuming

asio::awaitable<void> consume_scenario::consume() {
    for (;;) {
        co_await s_.pause(s_.pick(30));
        if (over_) break;
        const int client = some_client();
        running task(s_.user_executor(client), consume_once(client, 1 + s_.pick(3)));
        const auto at = consumers_.insert(consumers_.end(), task);
        const auto cancelled = std::make_shared<bool>(false);
        if (s_.chance(50))
            s_.after(20 + s_.pick(300), [task, cancelled]() mutable {
                *cancelled = true;
                task.cancel();
            });
        const std::exception_ptr failed = co_await task.end();
        consumers_.erase(at);
        try {
            if (!failed) throw violation("consume() has completed");
            std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            if (e.code() != condition::cancelled || (!*cancelled && !over_))
                throw violation(std::string("consume() fails: ") + e.what());
        } catch (const std::runtime_error&) {  // of a body, which consume() tells when it is cancelled
            if (!*cancelled && !over_) throw;
        }
    }
    --consuming_;
}

asio::awaitable<void> consume_scenario::consume_once(int client, std::size_t parallel) {
    std::size_t bodies = 0;
    auto body = [&](delivery& d) -> asio::awaitable<void> {
        const violation too_many("too many bodies run at the same time");
        if (++bodies > parallel) s_.spawn(fail_with(std::make_exception_ptr(too_many)));
        std::exception_ptr failed, broken;
        try {
            co_await work(client, d);
        } catch (const violation&) {
            broken = std::current_exception();
        } catch (...) {
            failed = std::current_exception();
        }
        --bodies;
        if (broken) s_.spawn(fail_with(broken));  // not as a body that fails
        if (failed) std::rethrow_exception(failed);
    };
    const consume_options how = consume_options().parallel(parallel).pause(500ms, 2s);
    co_await queue_of(client).consume(body, how);
}

asio::awaitable<void> consume_scenario::work(int client, delivery& d) {
    s_.note("client ", std::to_string(client), " works on ", d.item());
    const item_checker::work mine(*checker_, d);
    co_await s_.pause(s_.pick(15), client);
    if (draining_)
        checker_->will_be_done(d);
    else
        co_await work_somehow(client, d);
    s_.note("client ", std::to_string(client), " has worked on ", d.item());
}

asio::awaitable<void> consume_scenario::work_somehow(int client, delivery& d) {
    const std::size_t what = s_.pick(12);
    if (what < 4) checker_->will_be_done(d);
    if (what == 4 || what == 5) throw std::runtime_error("the body fails");
    if (what == 6) {
        checker_->will_be_done(d);
        co_await d.done();
    }
    if (what == 7) co_await d.again();
    if (what == 8) co_await d.again(std::chrono::milliseconds(s_.pick(4000)));
    if (what == 9) {
        checker_->will_be_rejected(d);
        co_await d.reject("unwanted");
    }
    if (what >= 10) {
        co_await time_.wait(std::chrono::milliseconds(s_.pick(12'000)));
        co_await s_.pause(s_.pick(15), client);
        checker_->will_be_done(d);
    }
}

// ------------------------------------------------------------------------------------------------------------ faults

void consume_scenario::expect(const error& e, bool cancelled) const {
    if (cancelled && e.code() == condition::cancelled) return;
    if (e.code() == errc::session_expired) return;  // time passes: a client may give up its session
    if (faults_.operator_deletes_receipts && e.outcome_unknown() && e.code() == zk_errc::connection_loss) return;
    throw violation(std::string("an operation failed: ") + e.what());
}

asio::awaitable<std::shared_ptr<const consume_scenario::outcome>> consume_scenario::perhaps_cancelled(
    int client, asio::awaitable<void> what, std::shared_ptr<outcome> o, int percent) {
    running task(s_.user_executor(client), std::move(what));
    const auto cancelled = std::make_shared<bool>(false);
    if (s_.chance(percent))
        s_.after(s_.pick(60), [task, cancelled]() mutable {
            if (task.ended()) return;
            *cancelled = true;
            task.cancel();
        });
    const std::exception_ptr failed = co_await task.end();
    try {
        if (failed) std::rethrow_exception(failed);
        if (!o->told) o->told = true;
    } catch (const error& e) {
        expect(e, *cancelled);
        o->unknown = e.outcome_unknown();
        o->session_expired = e.code() == errc::session_expired;
    } catch (const std::system_error& e) {  // the coroutine was cancelled before it began
        if (!*cancelled || e.code() != condition::cancelled) throw;
    }
    co_return o;
}

asio::awaitable<void> consume_scenario::trouble(std::size_t rounds) {
    for (; rounds > 0 && working_ > 1; --rounds) {
        co_await s_.pause(5 + s_.pick(50));
        const int victim = some_client();
        const std::size_t what = s_.pick(5);
        if (what == 0 && faults_.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && faults_.outages) time_.cut_off(victim, std::chrono::milliseconds(s_.pick(14'000)));
        if (what == 2 && faults_.expiries) {
            checker_->sessions_are_cut_short(true);
            s_.ensemble.expire(victim);
            checker_->sessions_are_cut_short(false);
        }
        if (what == 3 && faults_.operator_deletes_claims) s_.delete_child_of(at_.claims);
        if (what == 4 && faults_.operator_deletes_receipts) s_.delete_child_of(at_.receipts);
    }
    --working_;
}

// ------------------------------------------------------------------------------------------------------------- a run

asio::awaitable<void> consume_scenario::finish() {
    while (working_ > 0) co_await s_.pause(20);
    s_.note("all items are put");
    over_ = true;
    time_.end_outages();
    time_.be_steady();
    for (running& c : consumers_) c.cancel();
    while (consuming_ > 0) co_await s_.pause(20);
    // A put that was cancelled may be under way: its items are there later.
    for (int n = 0; n < s_.clients(); ++n) co_await s_.client_number(n).idle();
    s_.note("the last consumer");
    draining_ = true;
    const int client = some_client();
    running last(s_.user_executor(client), consume_once(client, 3));
    for (int pauses = 0; !checker_->all_done(); ++pauses) {
        if (pauses == 500) throw violation("items are left, and nobody is given them");
        co_await s_.pause(20);
        co_await revive(client);
    }
    last.cancel();
    const std::exception_ptr failed = co_await last.end();
    if (!failed) throw violation("consume() has completed");
    finished_ = true;
}

void consume_scenario::run_at_random() {
    s_.let_users_be_late();
    choose_options();
    const std::size_t clients = 2 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n)
        s_.add_client(faults_.drops_lose ? suspension_policy::lose : suspension_policy::keep);
    for (std::size_t n = 1 + s_.pick(4); n > 0; --n, ++working_) s_.spawn(s_.user_executor(), produce(1 + s_.pick(5)));
    for (std::size_t n = 1 + s_.pick(4); n > 0; --n, ++consuming_) s_.spawn(consume());
    for (std::size_t n = s_.pick(3); n > 0; --n, ++working_) s_.spawn(keep_books(1 + s_.pick(6)));
    ++working_;
    s_.spawn(trouble(10 + s_.pick(30)));
    s_.spawn(finish());
    time_.pass_while([this] { return !finished_; });
    s_.run();
    if (!finished_) throw violation("a user has not ended");
    checker_->check_end();
    s_.close();
}

}  // namespace zkasio::test
