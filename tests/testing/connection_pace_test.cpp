// How often clients connect to servers that accept and hang up, in the ensemble's time, counted by the servers.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"
#include "testing/steps.hpp"

#include <zkasio/client.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

// Of a client whose servers hang up at one of its requests, and answer others.
void check_pace_of_same_request(fake_ensemble& ensemble, const client& zk) {
    ensemble.run_for(4s);
    CHECK(ensemble.traffic(zk).connections <= 20);
    ensemble.run_for(1min);
    const auto before = ensemble.traffic(zk).connections;
    ensemble.run_for(1min);
    CHECK(ensemble.traffic(zk).connections - before <= 60);
}

// When the servers have answered a handshake.
class handshakes {
public:
    handshakes(fake_ensemble& e, const client& zk) : ensemble_(e), zk_(zk) {}
    void look() {
        while (times_.size() < ensemble_.traffic(zk_).connections) times_.push_back(ensemble_.now());
    }
    // At most one of them in `window`, from then on.
    using choice = std::function<bool(std::size_t attempt, fake_ensemble::duration since_first)>;
    bool spaced(fake_ensemble::duration window, const choice& counts) const {
        for (std::size_t i = 1; i < times_.size(); ++i)
            if (counts(i - 1, times_[i - 1] - times_.front()) && times_[i] - times_[i - 1] < window) return false;
        return true;
    }
    std::size_t count() const { return times_.size(); }

private:
    fake_ensemble& ensemble_;
    const client& zk_;
    std::vector<fake_ensemble::duration> times_;
};

void check_pace(const handshakes& seen) {
    INFO(seen.count());
    CHECK(seen.count() > 10);
    CHECK(seen.count() < 80);
    CHECK(seen.spaced(1s, [](std::size_t attempt, fake_ensemble::duration) { return attempt >= 10; }));
    CHECK(seen.spaced(10s, [](std::size_t, fake_ensemble::duration since) { return since > 1min; }));
}

}  // namespace

TEST_CASE("pace: a server that answers the handshake and hangs up is asked ever more rarely", "[pace][numbers]") {
    fake_ensemble ensemble;
    texts lines;
    client zk = ensemble.client(client_options("zk").session_timeout(10s).log(
        [&](std::string_view line) { lines.emplace_back(line); }, log_level::warning));
    ensemble.run(zk.connected());
    const bool asks = GENERATE(false, true);
    handshakes seen(ensemble, zk);
    ensemble.on_step([&](std::string_view) { seen.look(); });
    ensemble.hang_up(zk);
    seen.look();
    if (asks) {
        ensemble.run([&]() -> asio::awaitable<void> {
            const auto failed = co_await as_result(zk.get("/"));
            CHECK_FALSE(failed.has_value());
        });
    }
    ensemble.run_for(5min);
    check_pace(seen);
    const auto told = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return line.starts_with("5 connections in a row have ended before any request was answered");
    });
    CHECK(told == 1);
    // An answer ends the pace.
    ensemble.let_in(zk);
    ensemble.run([&]() -> asio::awaitable<void> {
        const auto first = co_await as_result(zk.exists("/"));  // the session has ended during a pause, perhaps
        if (!first) co_await zk.exists("/");
    }, 1min);
    const auto before = ensemble.now();
    ensemble.cut(zk);
    ensemble.run([&]() -> asio::awaitable<void> { co_await zk.exists("/"); }, 20s);
    CHECK(ensemble.now() - before < 1s);
}

TEST_CASE("pace: a server that forgets each session gets new ones ever more rarely", "[pace][numbers]") {
    fake_ensemble ensemble;
    client zk = ensemble.client(client_options("zk").session_timeout(10s));
    ensemble.run(zk.connected());
    handshakes seen(ensemble, zk);
    ensemble.hang_up(zk);
    seen.look();
    ensemble.on_step([&](std::string_view line) {
        seen.look();
        if (line.find("deliver 0: connection lost") != line.npos && ensemble.sessions() > 0) ensemble.expire(zk);
    });
    ensemble.run_for(5min);
    check_pace(seen);
}

TEST_CASE("pace: a connection that has lasted counts, also if nothing was asked for", "[pace]") {
    fake_ensemble ensemble;
    client zk = ensemble.client(client_options("zk").session_timeout(10s));
    ensemble.run(zk.connected());
    for (int i = 0; i < 20; ++i) {
        ensemble.hang_up(zk);
        ensemble.let_in(zk);
        const auto before = ensemble.now();
        ensemble.run(zk.connected(), 1s);
        CHECK(ensemble.now() - before < 200ms);
        ensemble.run_for(11s);
    }
}

namespace {

const std::string large(8000, 'x');

struct endless {
    std::string name;
    std::function<asio::awaitable<void>(client)> run;
};

std::vector<endless> repeated_for_ever() {
    return {
        {"a user's own loop",
         [](client zk) -> asio::awaitable<void> {
             for (;;) {
                 const auto failed = co_await as_result(zk.create("/l/u", large));
                 CHECK_FALSE(failed.has_value());
                 co_await zk.exists("/l");
             }
         }},
        {"a loop beside reads, whose answers are lost with the connection",
         [](client zk) -> asio::awaitable<void> {
             for (;;) {
                 const auto executor = co_await asio::this_coro::executor;
                 asio::co_spawn(executor, as_result(zk.exists("/l")), asio::detached);
                 const auto failed = co_await as_result(zk.create("/l/u", large));
                 CHECK_FALSE(failed.has_value());
                 co_await zk.exists("/l");
             }
         }},
    };
}

}  // namespace

// Other requests are answered on each connection, so that the pace of useless connections does not apply.
TEST_CASE("pace: the log names a request at which the servers hang up again and again, and pauses grow",
          "[pace][numbers]") {
    for (const auto& [name, run] : repeated_for_ever()) {
        INFO(name);
        fake_ensemble ensemble;
        ensemble.max_request(4096);
        ensemble.create("/l");
        texts lines;
        client zk = ensemble.client(client_options("zk").session_timeout(10s).log(
            [&](std::string_view line) { lines.emplace_back(line); }, log_level::warning));
        ensemble.run(zk.connected());
        asio::cancellation_signal stop;
        asio::co_spawn(ensemble.context(), run(zk), asio::bind_cancellation_slot(stop.slot(), asio::detached));
        check_pace_of_same_request(ensemble, zk);
        const auto told = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return has(line, "5 connections in a row have ended ") && has(line, "/l") && has(line, " bytes") &&
                   has(line, "is it larger than the servers' jute.maxbuffer");
        });
        CHECK(told == 1);
        stop.emit(asio::cancellation_type::terminal);
        ensemble.run_for(10s);
    }
}

// The caller of that request pauses, and not the client.
TEST_CASE("pace: a request at which the servers hang up takes no lock from the client, and no turn from others",
          "[pace][numbers]") {
    for (const auto pause : {0ms, 1ms, 50ms, 300ms, 1000ms})
        for (const auto timeout : {2s, 4s, 10s}) {
            INFO(pause.count() << " ms between tries, session timeout " << timeout.count() << " s");
            fake_ensemble ensemble;
            ensemble.max_request(4096);
            ensemble.create("/l");
            client zk = ensemble.client(client_options("zk").session_timeout(timeout));
            ensemble.run([&]() -> asio::awaitable<void> {
                const mutex lock(zk, "/m");
                const lock_guard guard = co_await lock.acquire();
                bool over = false;
                const auto tries = [&]() -> asio::awaitable<void> {
                    while (!over) {
                        const auto failed = co_await as_result(zk.create("/l/u", large));
                        CHECK_FALSE(failed.has_value());
                        if (pause > 0ms) co_await sleep_for(pause);
                    }
                };
                int good = 0, bad = 0;
                const auto others = [&]() -> asio::awaitable<void> {
                    while (!over) {
                        const auto done = co_await as_result(zk.set("/l", "x"));
                        ++(done.has_value() ? good : bad);
                        co_await sleep_for(1s);
                    }
                };
                running first(co_await asio::this_coro::executor, tries()),
                    second(co_await asio::this_coro::executor, others());
                for (int i = 0; i < 120; ++i) {
                    co_await sleep_for(1s);
                    CHECK(guard.held());
                }
                over = true;
                co_await first.code();
                co_await second.code();
                CAPTURE(good, bad);
                CHECK(good > 100);
                CHECK(bad < 15);
                co_await zk.close();
            });
        }
}

TEST_CASE("pace: a flapping network is no request at which the servers hang up", "[pace]") {
    fake_ensemble ensemble;
    ensemble.create("/l");
    texts lines;
    client zk = ensemble.client(client_options("zk").session_timeout(10s).log(
        [&](std::string_view line) { lines.emplace_back(line); }, log_level::warning));
    ensemble.run(zk.connected());
    int made = 0;
    const auto creates = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 200; ++i) {
            const auto done = co_await as_result(zk.create("/l/" + std::to_string(1000 + i)));
            made += done.has_value();
        }
    };
    int applied = 0;
    ensemble.on_step([&](std::string_view line) {
        if (line.find("apply 0: create") != line.npos && ++applied % 10 == 0) ensemble.cut(zk);
    });
    const auto before = ensemble.now();
    ensemble.run(creates, 1min);
    INFO(made);
    CHECK(ensemble.traffic(zk).connections > 10);
    CHECK(ensemble.now() - before < 5s);
    for (const std::string& line : lines) CHECK_FALSE(has(line, "connections in a row"));
}

TEST_CASE("pace: a candidate at whose create the servers hang up asks ever more rarely", "[pace][numbers]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    texts lines;
    client zk = ensemble.client(client_options("zk").session_timeout(10s).log(
        [&](std::string_view line) { lines.emplace_back(line); }, log_level::warning));
    ensemble.run(zk.connected());
    const candidate stands(zk, "/l/c", leader_election_options().id(large));
    check_pace_of_same_request(ensemble, zk);
    const auto told = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return has(line, "5 connections in a row have ended with the same request unanswered: create /l/c/");
    });
    CHECK(told == 1);
}

// Each other request of the connection is answered: only the repetition itself knows that it makes no progress.
TEST_CASE("pace: a large create beside others leaves them their connection now and then", "[pace]") {
    fake_ensemble ensemble;
    ensemble.max_request(4096);
    client zk = ensemble.client(client_options("zk").session_timeout(10s));
    ensemble.run([&]() -> asio::awaitable<void> {
        const mutex lock(zk, "/l/m", mutex_options().data(large)), small(zk, "/l/m");
        const auto failed = co_await as_result(lock.acquire());
        CHECK_FALSE(failed.has_value());
        const lock_guard guard = co_await small.acquire();
        CHECK(guard.held());
    }, 1min);
}

TEST_CASE("pace: a client whose watched paths are larger than jute.maxbuffer comes back after a cut", "[pace]") {
    fake_ensemble ensemble;
    client zk = ensemble.client(client_options("zk").session_timeout(10s));
    ensemble.run([&]() -> asio::awaitable<void> {
        std::vector<watched<std::optional<node_stat>>> all;
        for (int i = 0; i < 100; ++i) {
            auto one = co_await zk.exists_and_watch("/w" + std::to_string(i) + std::string(100, 'x'));
            all.push_back(std::move(one));
        }
        ensemble.max_request(4096);
        ensemble.cut(zk);
        co_await zk.exists("/");
    }, 1min);
}

TEST_CASE("pace: connected() of a client with credentials fails in time, though each connection breaks", "[pace]") {
    fake_ensemble ensemble;
    client zk = ensemble.client(client_options("zk").auth("digest", "u:p").connection_timeout(5s));
    ensemble.on_step([&](std::string_view line) {
        if (line.find("apply 0: exists /") != line.npos) ensemble.cut(zk);
    });
    const auto began = ensemble.now();
    ensemble.run([&]() -> asio::awaitable<void> {
        std::string what;
        try {
            co_await zk.connected();
        } catch (const error& e) {
            what = e.what();
            CHECK(e.code() == errc::not_connected);
        }
        CHECK(has(what, "no connection has lasted until a server had accepted the credentials"));
    }, 1min);
    CHECK(ensemble.now() - began >= 5s);
    CHECK(ensemble.now() - began < 9s);
}
