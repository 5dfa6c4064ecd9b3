#pragma once

#include "support/catch.hpp"
#include "support/fault_proxy.hpp"
#include "support/test_client.hpp"
#include "support/test_server.hpp"

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// For tests that let things change at random, over cuts and kills of servers, and compare in each pause what is shown
// with what is there.
namespace zkasio::test {

/// What changes things, until it is over.
struct unrest {
    unrest() {
        random.seed(Catch::rngSeed());
        random.discard(7);
    }
    unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }

    std::minstd_rand random;
    bool over = false;
    int changes = 0;
};

/// Three servers, two of them behind proxies.
struct troubled_servers {
    std::string proxies() const { return first.address() + "," + second.address(); }

    /// Some tenths of a second, in which `what` of 0 to 3 cuts connections, and 4 kills a server and starts it again.
    asio::awaitable<void> trouble(unsigned what, unrest& of) {
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (unsigned i = 0; i < 3; ++i) {
            pause.expires_after(std::chrono::milliseconds(20 + of.below(100)));
            co_await pause.async_wait(asio::use_awaitable);
            if (what == i) first.cut_all(fault_proxy::end::fin);
            if (what == i || what == 3) second.cut_all(fault_proxy::end::rst);
        }
        if (what != 4) co_return;
        const auto killed = static_cast<int>(of.below(3));
        co_await servers.async_kill(killed);
        co_await servers.async_start(killed);
        ++kills;
    }

    test_server servers{3};
    fault_proxy first{servers.endpoint(0)}, second{servers.endpoint(1)};
    int kills = 0;
};

inline asio::awaitable<void> until_ended(const std::vector<running>& all) {
    for (const running& r : all) {
        const std::exception_ptr failed = co_await r.end();
        if (failed) std::rethrow_exception(failed);
    }
}

/// Until `view()`, whether it is current and what it shows, is that.
template <class View, class Truths>
asio::awaitable<void> until_shown(const char* who, View view, Truths wanted) {
    const auto equal = [&]() -> asio::awaitable<bool> {
        const auto [is_current, shown] = view();
        co_return is_current && shown == wanted;
    };
    std::exception_ptr late;
    try {
        co_await eventually(equal, std::chrono::seconds(40));
    } catch (const std::runtime_error&) {
        late = std::current_exception();
    }
    if (!late) co_return;
    INFO(who);
    CHECK(view().first);
    CHECK(view().second == wanted);
    std::rethrow_exception(late);
}

/// How long such a test goes on.
inline std::chrono::seconds how_long() {
    const char* const given = std::getenv("ZKASIO_CACHE_TRUTH_SECONDS");
    return std::chrono::seconds(given ? std::atoi(given) : 15);
}

}  // namespace zkasio::test
