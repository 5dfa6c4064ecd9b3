#include "unit/support/rig.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/retry_policy.hpp>

#include <chrono>
#include <limits>

using namespace zkasio;
using namespace zkasio::test;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds of(any_duration d) { return d; }
constexpr milliseconds in_milliseconds(any_duration d) { return d; }

}  // namespace

TEST_CASE("any_duration: what fits into nanoseconds is kept, and what does not is the longest", "[clock]") {
    static_assert(of(nanoseconds(-7)) == nanoseconds(-7));
    static_assert(of(hours(24 * 365)) == hours(24 * 365));
    CHECK(of(0s) == 0ns);
    CHECK(of(1.5s) == 1500ms);
    CHECK(of(nanoseconds::max()) == nanoseconds::max());
    CHECK(of(nanoseconds::min()) == nanoseconds::min());
    CHECK(of(milliseconds::max()) == nanoseconds::max());
    CHECK(of(milliseconds::min()) == nanoseconds::min());
    CHECK(of(std::chrono::seconds::max()) == nanoseconds::max());
    CHECK(of(hours::max()) == nanoseconds::max());
    CHECK(of(std::chrono::duration<double>(1e300)) == nanoseconds::max());
    CHECK(of(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())) == nanoseconds::min());
    CHECK(of(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == nanoseconds::max());
}

TEST_CASE("any_duration: a part of a millisecond is a whole one, where milliseconds are needed", "[clock]") {
    static_assert(in_milliseconds(2s) == 2000ms);
    CHECK(in_milliseconds(0ns) == 0ms);
    CHECK(in_milliseconds(1ns) == 1ms);
    CHECK(in_milliseconds(1001us) == 2ms);
    CHECK(in_milliseconds(-1ns) == -1ms);
    CHECK(in_milliseconds(hours::max()) > hours(24 * 365 * 290));
    CHECK(in_milliseconds(hours::min()) < -hours(24 * 365 * 290));
}

TEST_CASE("any_duration: options take durations of any unit", "[clock]") {
    CHECK(client_options("").session_timeout(0.25s).session_timeout() == 250ms);
    CHECK(client_options("").connection_timeout(hours::max()).connection_timeout() > 24h);  // refused, and not wrapped
    CHECK(create_options().ttl(1.5s).ttl() == 1500ms);
    CHECK(put_options().delay(std::chrono::duration<float>(0.5F)).delay() == 500ms);
    CHECK(consume_options().pause(0.5s, 2min).pause_after(1) == 500ms);
    CHECK(unfair_mutex_options().back_off(0.5ms, 3s).first_back_off() == 1ms);
    CHECK(retry_policy::n_times(1, 0.2s).pause_before(0, 0ms, 0) == 200ms);
    CHECK_THROWS_AS(put_options().delay(-1us), error);
    CHECK_THROWS_AS(put_options().delay(hours::max()), error);
    CHECK_THROWS_AS(unfair_mutex_options().back_off(-1us, 1s), error);
}

TEST_CASE("the longest duration of any unit is no limit", "[clock]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        r.server.answer = [](const detail::request& what) {
            detail::reply answer;
            if (const auto* create = std::get_if<detail::create_request>(&what))
                answer.path = create->path + "0000000005";
            if (std::holds_alternative<detail::children_request>(what)) answer.code = zk_errc::no_auth;
            return answer;
        };
        co_await zk.connected();
        const std::error_code timed = co_await code_of(timeout(milliseconds::max(), zk.get("/a")));
        CHECK(timed == std::error_code());
        // An answer of the server, and not "invalid argument": the limit was taken.
        const std::error_code tried = co_await code_of(mutex(zk, "/m").try_acquire_for(milliseconds::max()));
        CHECK(tried == zk_errc::no_auth);
        const std::error_code shared = co_await code_of(shared_mutex(zk, "/rw").try_acquire_shared_for(hours::max()));
        CHECK(shared == zk_errc::no_auth);
    };
    r.run(body);
}
