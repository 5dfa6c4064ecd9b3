#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/detail/local_mutex.hpp>

#include <asio/this_coro.hpp>

using namespace zkasio;
using namespace zkasio::test;
using lock_detail::local_mutex;

// The coroutine of the owner may be reading at that moment, on another thread.
TEST_CASE("local mutex: the end of the session changes nothing for the owner, and refuses the others", "[lock]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const asio::any_io_executor here = co_await asio::this_coro::executor;
        local_mutex::claim owner(s, "/a", here), waiter(s, "/a", here);
        co_await next_turns(r.server);
        r.server.expire();
        const std::error_code why = co_await s.ended();
        CHECK(why == errc::session_expired);
        const std::error_code owned = co_await code_of(owner.acquired());
        CHECK_FALSE(owned);
        const std::error_code waited = co_await code_of(waiter.acquired());
        CHECK(waited == errc::session_expired);
    };
    r.run(body);
}
