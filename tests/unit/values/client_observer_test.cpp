#include "support/recording_observer.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/printable.hpp>

#include <asio/thread_pool.hpp>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

namespace {

using observer_ptr = std::shared_ptr<recording_observer>;

client_options told_to(const observer_ptr& o) { return rig::quick().observer(o, o->where.get_executor()); }

operation_stats stats_of(const client_stats& all, std::string_view operation) {
    for (const operation_stats& s : all.operations)
        if (s.operation == operation) return s;
    return {};
}

asio::awaitable<void> set_and_forget(client zk, std::string path) { co_await zk.set(std::move(path), "x"); }

}  // namespace

TEST_CASE("client_observer: each request is told with its path, its outcome and its times") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(told_to(seen));
    r.server.answer = [](const request& what) {
        reply a = refusal(path_of(what) == "/missing" ? std::error_code(zk_errc::no_node) : std::error_code());
        a.data = "12345";
        return a;
    };
    r.server.delay = 20ms;
    const auto began = boot_clock::now();
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/a");
        const std::error_code missing = co_await code_of(zk.set("/missing", "x"));
        CHECK(missing == zk_errc::no_node);
        const auto there = co_await zk.exists("/missing");  // that it is not there is no failure
        CHECK_FALSE(there);
    };
    r.run(body);
    seen->look();

    REQUIRE(seen->named("get").size() == 1);
    const operation_report get = seen->named("get").front();
    CHECK(get.path == "/a");
    CHECK_FALSE(get.code);
    CHECK_FALSE(get.outcome_unknown);
    CHECK_FALSE(get.cancelled);
    CHECK_FALSE(get.internal);
    CHECK(get.was_sent());
    CHECK(get.asked >= began);
    CHECK(get.asked <= get.sent);
    CHECK(get.in_queue() == get.sent - get.asked);
    CHECK(get.on_the_wire() >= 15ms);
    CHECK(get.ended <= boot_clock::now());
    REQUIRE(seen->named("set").size() == 1);
    CHECK(seen->named("set").front().code == zk_errc::no_node);
    CHECK_FALSE(seen->named("set").front().outcome_unknown);
    REQUIRE(seen->named("exists").size() == 1);
    CHECK_FALSE(seen->named("exists").front().code);
    CHECK(seen->lost == 0);

    const client_stats stats = r.core->stats();
    CHECK(stats_of(stats, "get").succeeded == 1);
    CHECK(stats_of(stats, "get").in_queue.count() == 1);
    CHECK(stats_of(stats, "get").on_the_wire.quantile(0.5) >= 15ms);
    CHECK(stats_of(stats, "set").failed == 1);
    CHECK(stats_of(stats, "exists").succeeded == 1);
    CHECK(stats.bytes_sent > 3 * 16);
    CHECK(stats.bytes_received == 3 * 5);
    CHECK(stats.pending == 0);
}

TEST_CASE("client_observer: a request that is cut off may have been applied, and is told as sent again when it is") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(told_to(seen).retry(retry_policy::exponential(1ms, 2ms, 3)));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::nullopt; };
        running writing(r.loop.executor(), set_and_forget(zk, "/a"));
        running reading(r.loop.executor(), get(zk, "/b"));
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        r.server.answer = [](const request&) { return reply{}; };
        r.server.drop();
        const std::error_code written = co_await writing.code();
        CHECK(written == zk_errc::connection_loss);
        const std::error_code read = co_await reading.code();
        CHECK_FALSE(read);
    };
    r.run(body);
    seen->look();
    REQUIRE(seen->named("set").size() == 1);
    CHECK(seen->named("set").front().outcome_unknown);
    REQUIRE(seen->named("get").size() == 2);  // each attempt
    CHECK(seen->named("get").front().code == zk_errc::connection_loss);
    CHECK_FALSE(seen->named("get").front().outcome_unknown);
    CHECK_FALSE(seen->named("get").back().code);
    const client_stats stats = r.core->stats();
    CHECK(stats.repeated == 1);
    CHECK(stats.connections == 2);
    CHECK(stats.connections_lost == 1);
    CHECK(stats.sessions == 1);
}

TEST_CASE("client_observer: requests that were cancelled are told once, when they end") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(told_to(seen));
    auto body = [&](client zk) -> asio::awaitable<void> {
        running unsent(r.loop.executor(), get(zk, "/unsent"));
        unsent.cancel();
        co_await unsent.end();
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::nullopt; };
        running sent(r.loop.executor(), get(zk, "/sent"));
        co_await r.server.until([&] { return r.server.count("get /sent") == 1; });
        sent.cancel();
        co_await sent.end();
        r.server.reply_to_all();
        co_await next_turns(r.server);
    };
    r.run(body);
    seen->look();
    REQUIRE(seen->named("get").size() == 2);
    const operation_report unsent = seen->named("get").front(), sent = seen->named("get").back();
    CHECK(unsent.path == "/unsent");
    CHECK(unsent.cancelled);
    CHECK(unsent.code == condition::cancelled);
    CHECK_FALSE(unsent.was_sent());
    CHECK(unsent.on_the_wire() == 0ns);
    CHECK(sent.path == "/sent");
    CHECK(sent.cancelled);
    CHECK_FALSE(sent.code);  // the server has served it
}

TEST_CASE("client_observer: what happens to the session is told in order") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(told_to(seen));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session first = co_await zk.current_session();
        r.server.expire();
        co_await first.ended();
        co_await zk.connected();
    };
    r.run(body);
    seen->look();
    std::vector<session_state> states;
    for (const session_event& e : seen->sessions) states.push_back(e.state);
    CHECK(states == std::vector<session_state>{session_state::connecting, session_state::connected,
                                               session_state::expired, session_state::connecting,
                                               session_state::connected, session_state::closed});
    CHECK(seen->sessions[2].session_id == 0x1001);
    const client_stats stats = r.core->stats();
    CHECK(stats.sessions == 2);
    CHECK(stats.sessions_expired == 1);
}

TEST_CASE("client_observer: one that is too slow does not hold the client up, and is told how much it has missed") {
    const auto seen = std::make_shared<recording_observer>();
    constexpr std::size_t most = 65'536, more = 500;
    rig r(told_to(seen));
    auto body = [&](client zk) -> asio::awaitable<void> {
        for (std::size_t i = 0; i < most + more; ++i) co_await zk.get("/a");
        CHECK(zk.stats().reports_dropped >= more);
    };
    r.run(body);  // nobody looks meanwhile
    seen->look();
    CHECK(seen->operations.size() <= most);
    CHECK(seen->operations.size() + seen->sessions.size() == most);
    CHECK(seen->lost == r.core->stats().reports_dropped);
    CHECK(seen->lost >= more);
}

namespace {

class unruly_observer final : public client_observer {
public:
    explicit unruly_observer(std::future<void> f) : goes_on_(std::move(f)) {}
    void operation(const operation_report&) override {
        goes_on_.wait();
        if (++told == 2) twice.set_value();
        throw std::runtime_error("out of disk space");
    }
    int told = 0;
    std::promise<void> twice;

private:
    std::future<void> goes_on_;
};

}  // namespace

TEST_CASE("client_observer: it is called on a thread of its own, may block there, and what it throws is nobody's",
          "[leaves]") {
    std::promise<void> go_on;
    const auto unruly = std::make_shared<unruly_observer>(go_on.get_future());
    rig r(rig::quick().observer(unruly));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.get("/a");
        co_await zk.get("/b");
    };
    r.run(body);  // it blocks all the time
    go_on.set_value();
    unruly->twice.get_future().wait();
    CHECK(unruly->told == 2);
}

TEST_CASE("client_stats: a histogram has buckets that end at powers of two of a microsecond") {
    using h = duration_histogram;
    CHECK(h::bucket_of(0ns) == 0);
    CHECK(h::bucket_of(-5ns) == 0);
    CHECK(h::bucket_of(1us) == 0);
    CHECK(h::bucket_of(1001ns) == 1);
    CHECK(h::bucket_of(2us) == 1);
    CHECK(h::bucket_of(2001ns) == 2);
    CHECK(h::bucket_of(std::chrono::hours(100)) == h::size - 1);
    CHECK(h::bucket_of(std::chrono::nanoseconds::max()) == h::size - 1);
    CHECK(h::upper_bound(0) == 1us);
    CHECK(h::upper_bound(10) == 1024us);
    CHECK(h::upper_bound(h::size - 1) == std::chrono::nanoseconds::max());
    for (std::size_t i = 0; i + 1 < h::size; ++i) CHECK(h::bucket_of(h::upper_bound(i)) == i);

    h some;
    CHECK(some.quantile(0.5) == 0ns);
    some.counts[3] = 9;
    some.counts[20] = 1;
    CHECK(some.count() == 10);
    CHECK(some.quantile(0.5) == 8us);
    CHECK(some.quantile(0.9) == 8us);
    CHECK(some.quantile(0.91) == h::upper_bound(20));
    CHECK(some.quantile(1) == h::upper_bound(20));
}

TEST_CASE("client_stats: requests that wait are seen, from another thread, too") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::nullopt; };
        running one(r.loop.executor(), get(zk, "/a"));
        running two(r.loop.executor(), get(zk, "/b"));
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        co_await next_turns(r.server);
        client_stats seen;
        std::thread([&] { seen = zk.stats(); }).join();
        CHECK(seen.pending == 2);
        CHECK(seen.operations.empty());  // none has ended
        r.server.reply_to_all();
        co_await one.end();
        co_await two.end();
    };
    r.run(body);
    CHECK(stats_of(r.core->stats(), "get").succeeded == 2);
}

TEST_CASE("printable: control characters are shown, and the rest stays as it is") {
    CHECK(printable("/a b\xc3\xbc") == "/a b\xc3\xbc");
    CHECK(printable(std::string("\0\n\x1b[31m\x7f", 8)) == "\\x00\\x0a\\x1b[31m\\x7f");
    // Those of ISO 6429 beyond ASCII, in UTF-8: U+009B is what "ESC [" is in seven bits.
    CHECK(printable("\xc2\x80 \xc2\x9b" "31m \xc2\x9f") == "\\xc2\\x80 \\xc2\\x9b31m \\xc2\\x9f");
    CHECK(printable("\xc2\xa0 \xc3\x9b \xe2\x82\xac") == "\xc2\xa0 \xc3\x9b \xe2\x82\xac");
}

TEST_CASE("printable: bytes that are no UTF-8 are shown, for a terminal may take them for control characters") {
    CHECK(printable("\x9b" "31m") == "\\x9b31m");
    CHECK(printable("a\xc2") == "a\\xc2");
    CHECK(printable("\xc2" "a \xe2\x82 \xff") == "\\xc2a \\xe2\\x82 \\xff");
    CHECK(printable("\xc0\x9b \xe0\x82\x9b") == "\\xc0\\x9b \\xe0\\x82\\x9b");  // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

TEST_CASE("client_observer: a report's time of day") {
    const auto now = std::chrono::system_clock::now();
    const auto then = to_system_time(boot_clock::now() - 1h);
    CHECK(then > now - 61min);
    CHECK(then < now - 59min);
}
