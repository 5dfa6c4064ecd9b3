#include "support/busy_threads.hpp"
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/config/config_value.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using number_config = config_value<int>;
using number_state = config_snapshot<int>;

config_format<int> as_number() {
    return config_format<int>([](std::string_view text) { return std::stoi(std::string(text)); },
                              [](int n) { return std::to_string(n); });
}

config_options<int> small_numbers() {
    config_options<int> options;
    options.validate([](int n) { return n < 1000000; });
    return options;
}

config_options<int> or_else(int n) { return small_numbers().default_value(n); }

// "5", "5!" with a problem, "!" with nothing else.
std::string text_of(const number_state& state) {
    return (state.value ? std::to_string(*state.value) : std::string()) + (state.problem ? "!" : "");
}

asio::awaitable<std::string> next_text(const config_changes<int>& changes) {
    const number_state state = co_await changes.next();
    co_return text_of(state);
}

asio::awaitable<void> await_next(config_changes<int> changes) { co_await changes.next(); }

asio::awaitable<void> until_shown(const number_config& config, std::string text) {
    const auto shown = [&]() -> asio::awaitable<bool> { co_return text_of(config.snapshot()) == text; };
    co_await eventually(shown);
}

asio::awaitable<void> add_one(const number_config& config, int times) {
    const auto one_more = [](int n) { return n + 1; };
    for (int i = 0; i < times; ++i) co_await config.update(one_more);
}

}  // namespace

TEST_CASE("config_value: nonsense keeps the last good value and is reported") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-nonsense");
        const std::string node = dir + "/n";
        co_await zk.create(node, "1");
        {
            const number_config config(zk, node, as_number(), small_numbers());
            CHECK_FALSE(config.value());
            co_await config.ready();
            CHECK(*config.value() == 1);
            CHECK_FALSE(config.last_error());
            const auto changes = config.changes();
            std::string text = co_await next_text(changes);
            CHECK(text == "1");
            co_await zk.set(node, "nonsense");
            text = co_await next_text(changes);
            CHECK(text == "1!");
            CHECK(*config.value() == 1);
            REQUIRE(config.last_error());
            CHECK(config.last_error()->code() == errc::invalid_argument);
            CHECK(std::string(config.last_error()->what()).find("config " + node + ": ") == 0);
            co_await zk.set(node, "1000000");  // is read, and refused
            text = co_await next_text(changes);
            CHECK(text == "1!");
            CHECK(std::string(config.last_error()->what()).find("version 2 is refused: validate()") !=
                  std::string::npos);
            CHECK(config.snapshot().version == 2);
            co_await zk.set(node, "2");
            text = co_await next_text(changes);
            CHECK(text == "2");
            CHECK_FALSE(config.last_error());
            // One that begins with nonsense.
            co_await zk.set(node, "");
            const number_config late(zk, node, as_number()), with_default(zk, node, as_number(), or_else(7));
            const std::error_code code = co_await code_of(late.ready());
            CHECK(code == errc::invalid_argument);
            CHECK_FALSE(late.value());
            co_await with_default.ready();
            CHECK(text_of(with_default.snapshot()) == "7!");
            co_await zk.set(node, "3");
            co_await until_shown(late, "3");
            co_await until_shown(with_default, "3");
            co_await late.ready();
        }
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("config_value: a node that is missing and is removed and made anew") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-missing");
        const std::string node = dir + "/deep/down/n";
        const number_config config(zk, node, as_number()), with_default(zk, node, as_number(), or_else(7));
        CHECK(*with_default.value() == 7);
        const std::string message = co_await message_of(config.ready());
        CHECK(message.find("config " + node + ": no such node") == 0);
        CHECK_FALSE(config.value());
        CHECK(config.snapshot().version == no_node_version);
        co_await with_default.ready();
        CHECK(text_of(with_default.snapshot()) == "7");
        const std::int32_t version = co_await config.set(5);  // and its parents
        CHECK(version == 0);
        co_await until_shown(config, "5");
        co_await until_shown(with_default, "5");
        co_await zk.remove(node);
        co_await until_shown(config, "5!");
        co_await until_shown(with_default, "7");
        CHECK(config.last_error()->code() == zk_errc::no_node);
        co_await config.ready();  // there is a value, if an old one
        co_await zk.create(node, "6");
        co_await until_shown(config, "6");
        co_await until_shown(with_default, "6");
        co_await zk.remove(node);
        co_await zk.create(node, "8");
        co_await until_shown(config, "8");
        co_await config.close();
        co_await with_default.close();
        CHECK(watched_below(dir).empty());
        CHECK(*config.value() == 8);
    };
    with_client(body);
}

TEST_CASE("config_value: set() with a version and what it refuses", "[any-server]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-set");
        const std::string node = dir + "/n";
        const number_config config(zk, node, as_number(), small_numbers());
        std::error_code code = co_await code_of(config.set(1, 0));
        CHECK(code == zk_errc::bad_version);  // there is none
        std::int32_t version = co_await config.set(1, no_node_version);
        CHECK(version == 0);
        const std::string message = co_await message_of(config.set(2, no_node_version));
        CHECK(message.find("set " + node + ": version does not match") == 0);
        version = co_await config.set(2, 0);
        CHECK(version == 1);
        code = co_await code_of(config.set(3, 0));
        CHECK(code == zk_errc::bad_version);
        version = co_await config.set(3);
        CHECK(version == 2);
        co_await until_shown(config, "3");
        CHECK(config.snapshot().version == 2);
        const std::string refused = co_await message_of(config.set(1000000));
        CHECK(refused.find("set " + node + ": invalid argument (the value is refused: validate()") == 0);
        code = co_await code_of(config.set(3, -3));
        CHECK(code == errc::invalid_argument);

        const auto read_only = [](std::string_view text) { return static_cast<int>(text.size()); };
        const number_config counted(zk, node, read_only);
        const std::string unwritable = co_await message_of(counted.set(1));
        CHECK(unwritable.find("does not say how to write") != std::string::npos);

        config_options<int> no_parents = small_numbers().create_with(create_options());
        const number_config below(zk, dir + "/x/y", as_number(), no_parents);
        for (const std::int32_t v : {any_version, no_node_version}) {
            const std::string missing = co_await message_of(below.set(1, v));
            CHECK(missing.find("set " + dir + "/x/y: no such node (the node, or its parent, does not exist") == 0);
        }
        CHECK_THROWS_AS(number_config(zk, "/a", as_number(), or_else(1000000)), error);
        CHECK_THROWS_AS(number_config(zk, "no/slash", as_number()), error);
    };
    with_client(body);
}

TEST_CASE("config_value: two writers that update at a time lose nothing") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-update");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        const number_config a(zk, dir + "/n", as_number(), or_else(100));
        const number_config b(other, dir + "/n", as_number(), or_else(100));
        const running first(executor, add_one(a, 30)), second(executor, add_one(b, 30));
        co_await first.end();
        co_await second.end();
        co_await until_shown(a, "160");
        co_await until_shown(b, "160");
        CHECK(a.snapshot().version == 59);

        const auto twice = [](int n) { return n * 2; };
        const number_state written = co_await a.update(twice);
        CHECK(*written.value == 320);
        CHECK(written.version == 60);
        const auto too_large = [](int) { return 1000000; };
        const std::string refused = co_await message_of(a.update(too_large));
        CHECK(refused.find("update " + dir + "/n: invalid argument") == 0);
        const auto thrower = [](int) -> int { throw error(errc::revoked, "mine"); };
        std::error_code code = co_await code_of(a.update(thrower));
        CHECK(code == errc::revoked);
        co_await zk.set(dir + "/n", "nonsense");
        const std::string unreadable = co_await message_of(a.update(twice));
        CHECK(unreadable.find("update " + dir + "/n: invalid argument (the value is refused: stoi") == 0);
        const number_config none(zk, dir + "/none", as_number());
        const std::string missing = co_await message_of(none.update(twice));
        CHECK(missing.find("update " + dir + "/none: no such node (there is no value to change") == 0);
        co_await b.close();
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("config_value: connections that are cut and a session that expires") {
    fault_proxy proxy(first_server());
    test_loop loop(60s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client writer(co_await asio::this_coro::executor, options());
        const test_client reader(co_await asio::this_coro::executor, options(proxy.address()));
        const std::string dir = co_await fresh_directory(writer, "config-cuts");
        const number_config config(reader, dir + "/n", as_number(), or_else(-1));
        co_await config.ready();
        for (int i = 0; i < 20; ++i) {
            proxy.cut_all(i % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
            CHECK(config.value());
            if (i % 7 == 3) co_await expire_session(reader);
            if (i % 3 == 2) co_await writer.remove(dir + "/n");
            co_await writer.create_or_set(dir + "/n", std::to_string(i));
            co_await until_shown(config, std::to_string(i));
        }
        co_await config.set(77);
        co_await until_shown(config, "77");
        co_await config.close();
        CHECK(watched_below(dir).empty());
        co_await reader.close();
        co_await writer.close();
        CHECK(reader.inside().pending_operations() == 0);
    };
    loop.run(body());
}

TEST_CASE("config_value: an answer to update() that is lost is told and not guessed") {
    fault_proxy proxy(first_server());
    test_loop loop(60s);
    auto body = [&]() -> asio::awaitable<void> {
        const test_client zk(co_await asio::this_coro::executor, options(proxy.address()));
        const test_client other(co_await asio::this_coro::executor, options());
        const std::string dir = co_await fresh_directory(other, "config-lost-answer");
        const number_config config(zk, dir + "/n", as_number(), or_else(0));
        co_await config.ready();
        bool cut = false;
        const auto add_and_cut = [&](int n) {
            if (!std::exchange(cut, true)) proxy.cut_all();
            return n + 1;
        };
        std::optional<error> failed;
        try {
            co_await config.update(add_and_cut);
        } catch (const error& e) {
            failed = e;
        }
        // It may have been cut before it was sent: then it waits for the next connection.
        if (failed) CHECK(failed->operation() == "update");
        if (failed) CHECK(failed->outcome_unknown());
        co_await zk.connected();
        co_await config.update(add_and_cut);
        co_await config.close();
        co_await zk.close();
        co_await other.close();
    };
    loop.run(body());
}

TEST_CASE("config_value: what waits ends when it is destroyed or closed or the client is closed") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-ends");
        co_await zk.create(dir + "/n", "1");
        const auto executor = co_await asio::this_coro::executor;
        std::error_code code;
        {
            std::optional<number_config> doomed(std::in_place, zk, dir + "/n", as_number());
            co_await doomed->ready();
            const auto changes = doomed->changes();
            co_await changes.next();
            const running waiting(executor, await_next(changes));
            co_await turns(2);
            const std::string second = co_await message_of(changes.next());
            CHECK(second.find("another coroutine awaits next()") != std::string::npos);
            doomed.reset();
            code = co_await waiting.code();
            CHECK(code == errc::client_closed);
            co_await zk.idle();
            CHECK(watched_below(dir).empty());
        }
        { const number_config quick(zk, dir + "/n", as_number()); }
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        number_config config(zk, dir + "/n", as_number());
        co_await config.ready();
        number_config moved = std::move(config);
        code = co_await code_of(config.ready());
        CHECK(code == errc::invalid_argument);
        code = co_await code_of(config.set(1));
        CHECK(code == errc::invalid_argument);
        CHECK_THROWS_AS(config.value(), error);
        CHECK(*moved.value() == 1);
        config = std::move(moved);
        const auto changes = config.changes();
        co_await changes.next();
        const running until_close(executor, await_next(changes));
        co_await turns(2);
        co_await zk.close();
        code = co_await until_close.code();
        CHECK(code == errc::client_closed);
        CHECK(*config.value() == 1);
        code = co_await code_of(config.set(2));
        CHECK(code == errc::client_closed);
        const number_config late(zk, dir + "/n", as_number());
        code = co_await code_of(late.ready());
        CHECK(code == errc::client_closed);
    };
    with_client(body);
}

TEST_CASE("config_value: cancelled at each await") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-cancelled");
        const number_config config(zk, dir + "/n", as_number(), or_else(0));
        const auto one_more = [](int n) { return n + 1; };
        const auto everything = [&]() -> asio::awaitable<void> {
            const number_config another(zk, dir + "/n", as_number(), or_else(0));
            co_await another.ready();
            const auto changes = another.changes();
            co_await changes.next();
            co_await another.set(5);
            co_await another.update(one_more);
            while (*another.value() != 6) co_await changes.next();
            co_await another.close();
        };
        const int cancelled = co_await cancel_everywhere(everything);
        CHECK(cancelled > 10);
        co_await zk.idle();
        co_await config.set(11);
        co_await until_shown(config, "11");
        co_await config.close();
        CHECK(watched_below(dir).empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("config_value: other threads read it while it changes", "[threads]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config-threads");
        const number_config config(zk, dir + "/n", as_number(), or_else(0));
        co_await config.ready();
        std::atomic<int> wrong{0};
        busy_threads readers([&, last = 0]() mutable {
            const number_state now = config.snapshot();
            if (*now.value < last || (*now.value > 0 && now.version != *now.value - 1)) ++wrong;
            last = *now.value;
        });
        for (int i = 1; i <= 200; ++i) co_await config.set(i);
        co_await until_shown(config, "200");
        readers.end();
        CHECK(wrong == 0);
        co_await config.close();
    };
    with_client(body);
}
