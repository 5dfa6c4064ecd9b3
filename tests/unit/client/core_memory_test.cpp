// A call that runs out of memory fails, and no later one is held up by it: each allocation in turn is refused.
#include "unit/support/counting_new.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/connection/socket_watch.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#ifdef ZKASIO_TEST_COUNTS_NEW

namespace core_memory_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

// Whether the n-th allocation that `f` asks for was refused; otherwise there are fewer.
template <class F>
bool refused(long n, F f) {
    news_until_refusal = n;
    try {
        f();
    } catch (const std::bad_alloc&) {
    }
    return std::exchange(news_until_refusal, -1) < 0;
}

// Asio keeps the memory of handlers that have run: with so many that wait, the next one needs more.
asio::awaitable<void> use_up_recycled_memory(test_loop& loop) {
    for (int i = 0; i < 16; ++i) asio::post(loop.executor(), [] {});
    co_return;
}

TEST_CASE("no memory: for a request, and later ones are sent", "[no_memory]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        for (long n = 0; n < 100; ++n) {
            co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
            const auto kept = std::make_shared<kept_reply>();
            command c;
            c.what = get_request{"/a", false};
            co_await use_up_recycled_memory(r.loop);
            const bool was_refused =
                refused(n, [&] { r.core->requests().submit(std::move(c), kept, request_table::repeat::never); });
            co_await zk.get("/b");
            if (!was_refused) co_return;
        }
        FAIL("it never ends");
    };
    r.run(body);
}

TEST_CASE("no memory: for a heartbeat, and the next one is sent", "[no_memory]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session s = co_await zk.current_session();
        const session_hold hold = s.hold("/a");
        auto now = boot_clock::now();
        const auto beats = [&] {
            return std::count_if(r.server.requests.begin(), r.server.requests.end(),
                                 [](const auto& q) { return is_heartbeat(q.what); });
        };
        for (long n = 0; n < 100; ++n) {
            co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
            const bool was_refused = refused(n, [&] { r.core->holds().on_time(now += s.timeout()); });
            const auto before = beats();
            r.core->holds().on_time(now += s.timeout());
            co_await r.server.until([&] { return beats() > before; });
            co_await zk.get("/b");
            if (!was_refused) co_return;
        }
        FAIL("it never ends");
    };
    r.run(body);
}

TEST_CASE("no memory: to wait for the socket, and the next attempt to wait succeeds", "[no_memory]") {
    bool was_refused = true;
    for (long n = 0; was_refused && n < 100; ++n) {
        test_loop loop;
        const auto alive = std::make_shared<int>();
        const auto watch = std::make_shared<socket_watch>(asio::make_strand(loop.executor()));
        int ready = 0;
        watch->start(alive, nullptr, [&](bool, bool) {
            ++ready;
            watch->close();
        });
        const owned_descriptor readable(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
        was_refused = refused(n, [&] { watch->arm(readable.get(), 1, true, false); });
        watch->arm(readable.get(), 1, true, false);
        loop.run();
        CHECK(ready == 1);
    }
    CHECK_FALSE(was_refused);
}

}  // namespace core_memory_tests

#endif
