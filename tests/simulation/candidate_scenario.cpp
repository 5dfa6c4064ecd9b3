#include "simulation/candidate_scenario.hpp"

#include "support/test_client.hpp"

#include <zkasio/error.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <utility>

namespace zkasio::test {
namespace {

/// What a body throws that has nothing to do with its term.
struct enough {};

bool is_cancellation(const std::exception_ptr& failed) {
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        return e.code() == condition::cancelled;
    } catch (...) {
        return false;
    }
}

asio::awaitable<void> until_cancelled() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    std::error_code woken;
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

}  // namespace

candidate_scenario::candidate_scenario(simulation& s) : s_(s) {
    s_.ensemble.on_commit = [this](const sim_txn& txn) { checker_.committed(txn); };
    s_.on_idle = [this] { checker_.check(); };
    s_.on_quiet = [this] {
        if (silent_ == 0) checker_.check_quiet();
    };
}

candidate_scenario::~candidate_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = s_.on_quiet = [] {};
}

// ----------------------------------------------------------------------------------------------------- readers

// What is told is checked in the turn of the coroutine that has asked.
asio::awaitable<void> candidate_scenario::ask(candidate_ptr who) {
    if (!who->object) co_return;
    const candidate_status when_asked = who->object->status();
    who->reads = true;
    const candidate_status now = co_await who->object->next();
    who->reads = false;
    s_.note(who->id, " tells: ", std::string(to_string(now.state)), " ", std::to_string(now.token.value()), " ",
            std::string(to_string(now.reason)));
    checker_.told(*who, now, when_asked);
}

asio::awaitable<void> candidate_scenario::read(candidate_ptr who) {
    while (who->object) {
        running next(s_.user_executor(who->client), ask(who));
        if (s_.chance(15)) s_.after(s_.pick(60), [next]() mutable { next.cancel(); });
        const std::exception_ptr failed = co_await next.end();
        who->reads = false;
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            const bool told_end = who->told && who->told->state == candidate_state::ended;
            if (e.code() == errc::client_closed && told_end) break;
            if (e.code() != condition::cancelled) throw violation(who->id + ": next() has failed: " + e.what());
        }
        if (s_.chance(20)) co_await s_.pause(s_.pick(60));
    }
    --working_;
}

// ------------------------------------------------------------------------------------------------------ bodies

asio::awaitable<void> candidate_scenario::work(candidate_ptr who, run_ptr r, const leadership& leader) {
    candidate_checker::body here(checker_, who, leader);
    const std::string term = std::to_string(leader.token().value());
    if (!r->terms.insert(leader.token().value()).second) throw violation(who->id + " has run a body twice in " + term);
    s_.note(who->id, ": a body begins in ", term);
    if (s_.chance(25)) {
        co_await s_.pause(s_.pick(20), who->client);
    } else {
        co_await until_cancelled();
        here.is_cancelled();
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        if (s_.chance(60)) co_await s_.pause(s_.pick(20), who->client);
        if (s_.chance(30)) throw error(zk_errc::connection_loss, "work");
    }
    s_.note(who->id, ": a body ends in ", term);
    r->has_thrown = s_.chance(8);
    if (r->has_thrown) throw enough();
}

asio::awaitable<void> candidate_scenario::run(candidate_ptr who, run_ptr r) {
    if (!who->object) co_return;
    std::function<asio::awaitable<void>(const leadership&)> body = [&](const leadership& leader) {
        return work(who, r, leader);
    };
    co_await who->object->run(body);
}

asio::awaitable<void> candidate_scenario::run_bodies(candidate_ptr who) {
    const auto r = std::make_shared<run_call>();
    const auto cancelled = std::make_shared<bool>(false);
    running runs(s_.user_executor(who->client), run(who, r));
    if (s_.chance(20))
        s_.after(s_.pick(150), [runs, cancelled]() mutable {
            *cancelled = true;
            runs.cancel();
        });
    const std::exception_ptr failed = co_await runs.end();
    try {
        if (failed) std::rethrow_exception(failed);
        if (!who->closed) throw violation(who->id + ": run() has returned before close()");
        if (r->has_thrown) throw violation(who->id + ": the exception of a body is lost");
    } catch (const enough&) {
        if (!r->has_thrown) throw violation(who->id + ": run() has failed, and no body");
    } catch (const std::system_error& e) {
        // A body that run() has cancelled may fail as a body does at the end of its term.
        const bool expected = *cancelled && (e.code() == condition::cancelled || e.code() == zk_errc::connection_loss);
        if (!expected || r->has_thrown) throw violation(who->id + ": run() has failed: " + e.what());
    }
    --working_;
}

// ---------------------------------------------------------------------------------------------------- programs

asio::awaitable<void> candidate_scenario::step_down(candidate_ptr who) {
    if (!who->object) co_return;
    const std::int64_t token = checker_.gives_up(*who);
    s_.note(who->id, " is to step down from ", std::to_string(token));
    asio::awaitable<void> resigns = who->object->step_down();
    if (who->object->leads()) throw violation(who->id + " leads after step_down()");
    co_await std::move(resigns);
    s_.note(who->id, " has stepped down from ", std::to_string(token));
    checker_.has_given_up(*who, token);
}

asio::awaitable<void> candidate_scenario::let_step_down(candidate_ptr who) {
    if (who->object && s_.chance(15)) {
        checker_.gives_up(*who);
        (void)who->object->step_down();
        co_return;
    }
    running steps_down(s_.user_executor(who->client), step_down(who));
    if (s_.chance(15)) s_.after(s_.pick(20), [steps_down]() mutable { steps_down.cancel(); });
    const std::exception_ptr failed = co_await steps_down.end();
    if (failed && !is_cancellation(failed)) std::rethrow_exception(failed);
}

asio::awaitable<void> candidate_scenario::close(candidate_ptr who) {
    const std::int64_t token = checker_.closes(*who);
    s_.note(who->id, " is closed");
    co_await who->object->close();
    s_.note(who->id, " has left");
    if (who->object->status().state != candidate_state::ended) throw violation(who->id + " has left, and stands");
    checker_.has_given_up(*who, token);
}

asio::awaitable<void> candidate_scenario::leave(candidate_ptr who) {
    if (s_.chance(30)) {
        checker_.closes(*who);
        who->object.reset();
        co_return;
    }
    if (s_.chance(30)) {
        checker_.closes(*who);
        (void)who->object->close();
        co_await s_.pause(s_.pick(10), who->client);
    }
    running closes(s_.user_executor(who->client), close(who));
    if (s_.chance(20)) s_.after(s_.pick(20), [closes]() mutable { closes.cancel(); });
    const std::exception_ptr failed = co_await closes.end();
    if (failed && !is_cancellation(failed)) std::rethrow_exception(failed);
    // A coroutine that is cancelled before its first turn has not called close().
    if (s_.chance(50) || !who->closed) {
        checker_.closes(*who);
        who->object.reset();
    }
}

asio::awaitable<void> candidate_scenario::stand(candidate_ptr who) {
    who->object.emplace(s_.client_number(who->client), candidates_directory, leader_election_options().id(who->id));
    s_.note(who->id, " stands");
    checker_.stands(who);
    ++working_;
    s_.spawn(s_.user_executor(who->client), read(who));
    for (std::size_t bodies = s_.pick(3); bodies > 0; --bodies, ++working_)
        s_.spawn(s_.user_executor(who->client), run_bodies(who));
    for (std::size_t rounds = s_.pick(4); rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(s_.chance(70) ? 30 : 200), who->client);
        if (s_.chance(60)) co_await let_step_down(who);
    }
    co_await s_.pause(s_.pick(60), who->client);
    co_await leave(who);
}

asio::awaitable<void> candidate_scenario::program(int client, std::size_t candidates) {
    for (; candidates > 0; --candidates) {
        co_await s_.pause(s_.pick(25), client);
        const std::string id = std::to_string(client) + '.' + std::to_string(next_id_++);
        co_await stand(std::make_shared<watched_candidate>(client, id));
    }
    --working_;
}

// ------------------------------------------------------------------------------------------------------ faults

void candidate_scenario::begin_silence(int client, bool expires) {
    if (s_.ensemble.is_silent(client)) return;
    s_.note("silence of client ", std::to_string(client));
    s_.ensemble.silence(client);
    ++silent_;
    if (expires) s_.after(s_.pick(60), [this, client] { s_.ensemble.expire(client); });
    s_.after(30 + s_.pick(120), [this, client] {
        s_.note("client ", std::to_string(client), " is heard again");
        s_.ensemble.end_silence(client);
        --silent_;
    });
}

asio::awaitable<void> candidate_scenario::trouble(faults f, bool silences) {
    for (int n = 0; n < 40 && working_ > 0; ++n) {
        co_await s_.pause(5 + s_.pick(60));
        const int victim = static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients())));
        const std::size_t what = s_.pick(f.directory_deletes ? 7 : 6);
        const std::vector<std::string> nodes = checker_.nodes();
        if (what == 0 && f.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && f.expiries && s_.chance(50)) s_.ensemble.expire(victim);
        if (what == 2 && f.operator_deletes && !nodes.empty())
            s_.ensemble.operate(detail::remove_request{nodes[s_.pick(nodes.size())], any_version});
        if (what == 3 && f.containers) s_.ensemble.remove_empty_containers();
        if (what == 4 && !checker_.candidates().empty())
            co_await let_step_down(checker_.candidates()[s_.pick(checker_.candidates().size())]);
        if (what == 5 && silences) begin_silence(victim, f.expiries && s_.chance(50));
        if (what == 6) {
            for (const std::string& path : nodes) s_.ensemble.operate(detail::remove_request{path, any_version});
            s_.ensemble.operate(detail::remove_request{candidates_directory, any_version});
        }
    }
}

void candidate_scenario::begin(suspension_policy when_suspended) {
    s_.let_users_be_late();
    const std::size_t clients = 2 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n) s_.add_client(when_suspended);
    const std::size_t programs = 2 + s_.pick(s_.chance(80) ? 3 : 8), candidates = 1 + s_.pick(3);
    for (std::size_t n = 0; n < programs; ++n, ++working_)
        s_.spawn(s_.user_executor(), program(static_cast<int>(s_.pick(clients)), candidates));
}

void candidate_scenario::run_at_random(const faults& f, bool silences) {
    if (f.drops) checker_.connections_break();
    if (f.drops_lose) checker_.loses_with_connection();
    begin(f.drops_lose ? suspension_policy::lose : suspension_policy::keep);
    s_.spawn(trouble(f, silences));
    s_.run();
    end();
}

// Timers that are due, and those that follow from them, have their turns before anything else happens; a lease that is
// over does not need them.
void candidate_scenario::tick(std::size_t more) {
    time_->pass(std::chrono::milliseconds(s_.pick(s_.chance(80) ? 1500 : 6000)));
    checker_.check();
    for (int turns = 0; turns < 4; ++turns) s_.after(0, [] {});
    if (more == 0 || working_ == 0) return;
    if (s_.chance(30)) {
        const int victim = static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients())));
        const auto how_long = std::chrono::milliseconds(s_.pick(18'000));
        s_.after(1 + s_.pick(8), [this, victim, how_long] { time_->cut_off(victim, how_long); });
    }
    s_.after(1 + s_.pick(20), [this, more] { tick(more - 1); });
}

void candidate_scenario::run_in_time() {
    time_ = std::make_unique<passing_time>(s_);
    checker_.leases_end();
    s_.on_idle = [this] {
        time_->note_connections();
        checker_.check();
    };
    s_.on_quiet = [] {};
    begin(suspension_policy::keep);
    tick(40);
    s_.run();
    for (int turns = 0; turns < 100 && (working_ > 0 || time_->somebody_is_cut_off()); ++turns) {
        tick(0);
        s_.run();
    }
    end();
}

void candidate_scenario::end() {
    if (working_ > 0) throw violation("a coroutine of a candidate has not ended");
    if (!checker_.nodes().empty()) throw violation("a node is left: " + checker_.nodes().front());
    for (const candidate_ptr& who : checker_.candidates()) who->object.reset();
    s_.run();
    s_.close();
}

}  // namespace zkasio::test
