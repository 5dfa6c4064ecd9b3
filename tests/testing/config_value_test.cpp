#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/config/config_value.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace config_value_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

config_format<int> as_number() {
    return config_format<int>([](std::string_view text) { return std::stoi(std::string(text)); },
                              [](int n) { return std::to_string(n); });
}

}  // namespace

TEST_CASE("config_value: initialize() creates the node once, whoever calls it, and leaves a value alone") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        {
            config_options<int> small;
            small.validate([](int n) { return n < 100; });
            const config_value<int> ours(zk, "/deep/n", as_number(), small), theirs(other, "/deep/n", as_number());
            bool created = co_await ours.initialize(5);
            CHECK(created);
            CHECK(e.data("/deep/n") == "5");
            created = co_await theirs.initialize(6);
            CHECK_FALSE(created);
            created = co_await ours.initialize(7);
            CHECK_FALSE(created);
            CHECK(e.data("/deep/n") == "5");
            CHECK(e.stat("/deep/n")->version == 0);
            const std::string refused = co_await message_of(ours.initialize(100));
            CHECK(refused == "initialize /deep/n: invalid argument (the value is refused: validate() says no)");

            e.set("/deep/n", "nonsense");  // is left alone as well
            created = co_await ours.initialize(8);
            CHECK_FALSE(created);
            CHECK(e.data("/deep/n") == "nonsense");

            e.remove("/deep/n");
            e.lose_answer(zk, "create");
            std::optional<error> failed;
            try {
                co_await ours.initialize(9);
            } catch (const error& x) {
                failed = x;
            }
            REQUIRE(failed);
            CHECK(failed->operation() == "initialize");
            CHECK(failed->outcome_unknown());
            created = co_await ours.initialize(9);
            CHECK_FALSE(created);
            CHECK(e.data("/deep/n") == "9");

            config_options<int> no_parents;
            no_parents.create_with(create_options());
            const config_value<int> below(zk, "/x/y", as_number(), no_parents);
            const std::string missing = co_await message_of(below.initialize(1));
            CHECK(missing.find("initialize /x/y: no such node (the node, or its parent, does not exist") == 0);
        }
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
}

TEST_CASE("config_value: update() names itself in failures, and passes exceptions of the change on") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        {
            config_options<int> zero;
            zero.default_value(0).create_with(create_options());
            const config_value<int> config(zk, "/n", as_number(), zero), below(zk, "/x/y", as_number(), zero);
            const auto add = [](int n) { return n + 1; };
            config_snapshot<int> now = co_await config.update(add);
            CHECK(*now.value == 1);
            CHECK(now.version == 0);
            bool once = true;
            const auto beside = [&](int n) {
                if (std::exchange(once, false)) e.set("/n", "10");
                return n + 1;
            };
            now = co_await config.update(beside);
            CHECK(*now.value == 11);
            CHECK(now.version == 2);
            const auto thrower = [](int) -> int { throw error(zk_errc::no_node, "mine", "/n", "my hint"); };
            const std::string mine = co_await message_of(config.update(thrower));
            CHECK(mine == "mine /n: no such node (my hint)");
            const std::string missing = co_await message_of(below.update(add));
            CHECK(missing.find("update /x/y: no such node (the node, or its parent, does not exist: see "
                               "config_options::create_with())") == 0);
            e.refuse("/n", zk_errc::no_auth);
            const std::string refused = co_await message_of(config.update(add));
            CHECK(refused.find("update /n: ") == 0);
            e.accept("/n");
            e.lose_answer(zk, "set");
            std::optional<error> failed;
            try {
                co_await config.update(add);
            } catch (const error& x) {
                failed = x;
            }
            REQUIRE(failed);
            CHECK(failed->operation() == "update");
            CHECK(failed->outcome_unknown());
            CHECK(e.data("/n") == "12");
        }
        co_await zk.close();
    };
    e.run(body);
}

}  // namespace config_value_tests
