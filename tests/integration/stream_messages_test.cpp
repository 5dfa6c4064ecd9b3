// What streams, caches and configuration say when they fail.
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/membership/group.hpp>

#include <optional>
#include <string>
#include <string_view>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using text_number = config_value<int>;

config_format<int> number_as_text() {
    return config_format<int>([](std::string_view text) { return std::stoi(std::string(text)); },
                              [](int n) { return std::to_string(n); });
}

config_options<int> zero() { return config_options<int>().default_value(0); }

}  // namespace

TEST_CASE("watch_value: a timeout tells what was waited for") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watch-value-timeout");
        const value_stream stream = watch_value(zk, dir);
        co_await stream.next();
        std::string text = co_await message_of(timeout(1ms, stream.next()));
        CHECK(text.find("next " + dir + ": ") == 0);
        const node_cache cache(zk, dir);
        co_await cache.ready();
        const cache_changes changes = cache.changes();
        co_await changes.next();
        text = co_await message_of(timeout(1ms, changes.next()));
        CHECK(text.find("next " + dir + ": ") == 0);
        const auto next_update = [](cache_changes of) -> asio::awaitable<void> { co_await of.next(); };
        const running waiting(co_await asio::this_coro::executor, next_update(changes));
        co_await turns(2);
        text = co_await message_of(changes.next());
        CHECK(text.find("another coroutine awaits next()") != std::string::npos);
        text = co_await message_of(timeout(0s, cache.close()));
        CHECK((text.empty() || text.find("close " + dir + ": ") == 0));
        for (int twice = 0; twice < 2; ++twice) {
            co_await cache.close();
            co_await stream.close();
        }
        const std::error_code code = co_await waiting.code();
        CHECK(code == errc::client_closed);
        CHECK(watched_below(dir).empty());
        const test_client nowhere(co_await asio::this_coro::executor, options("127.0.0.1:1"));
        const node_cache unread(nowhere, "/a");
        text = co_await message_of(timeout(1ms, unread.ready()));
        CHECK(text.find("ready /a: ") == 0);
        co_await nowhere.close();
    };
    with_client(body);
}

TEST_CASE("config_value: failures say what has failed and why", "[real-names]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-messages");
        const auto executor = co_await asio::this_coro::executor;
        const text_number config(zk, dir + "/n", number_as_text(), zero());
        const auto changes = config.changes();
        co_await changes.next();
        std::string text = co_await message_of(timeout(1ms, changes.next()));
        CHECK(text.find("next " + dir + "/n: ") == 0);
        // A printer that writes what its parser refuses.
        const auto print_nonsense = [](int) { return std::string("x"); };
        const config_format<int> broken(number_as_text().parse(), print_nonsense);
        const text_number one_way(zk, dir + "/broken", broken, zero());
        text = co_await message_of(one_way.set(1));
        CHECK(text.find("set " + dir + "/broken: ") == 0);
        CHECK(text.find("cannot be read: stoi") != std::string::npos);
        const std::optional<node_stat> written = co_await zk.exists(dir + "/broken");
        CHECK_FALSE(written);

        const test_client lost(executor, options(shared_servers() + dir + "/no/chroot"));
        const text_number below(lost, "/n", number_as_text(), zero());
        const auto one_more = [](int n) { return n + 1; };
        text = co_await message_of(below.set(1));
        CHECK(text.find("set /n: ") == 0);
        CHECK(text.find("the chroot") != std::string::npos);
        text = co_await message_of(below.update(one_more));
        CHECK(text.find("update /n: ") == 0);
        CHECK(text.find("the chroot") != std::string::npos);
        co_await lost.close();

        const test_client nowhere(executor, options("127.0.0.1:1").connection_timeout(50ms));
        const text_number unread(nowhere, "/n", number_as_text());
        text = co_await message_of(unread.set(1));
        CHECK(text.find("set /n: ") == 0);
        CHECK(text.find("127.0.0.1:1") != std::string::npos);
        text = co_await message_of(timeout(1ms, unread.ready()));
        CHECK(text.find("ready /n: ") == 0);
        co_await nowhere.close();
    };
    with_client(body);
}

TEST_CASE("group_observer: speaks of the group and not of its cache") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-messages");
        const group_observer observer = group(zk, dir).observe();
        co_await observer.next();
        std::string text = co_await message_of(timeout(1ms, observer.next()));
        CHECK(text.find("observe " + dir + ": ") == 0);
        co_await zk.close();
        text = co_await message_of(observer.next());
        CHECK(text.find("observe " + dir + ": client closed") == 0);
    };
    with_client(body);
}
