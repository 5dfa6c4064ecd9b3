// Configuration in JSON, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/config/config_value.hpp>
#include <zkasio/config/json.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <string>
#include <system_error>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct limits {
    int connections = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limits, connections)

int one_more(int n) { return n + 1; }
limits one_more_of(limits l) {
    ++l.connections;
    return l;
}

enum class open_mode {
    read_only,
    read_write
};
NLOHMANN_JSON_SERIALIZE_ENUM(open_mode, {{open_mode::read_only, "read-only"}, {open_mode::read_write, "read-write"}})

asio::awaitable<void> update_mode(const config_value<open_mode>& value) {
    co_await value.update([](open_mode a) { return a; });
}
asio::awaitable<void> update_number(const config_value<int>& value) { co_await value.update(&one_more); }
asio::awaitable<void> update_limits(const config_value<limits>& value) { co_await value.update(&one_more_of); }

}  // namespace

TEST_CASE("config_value: update() does not write what was cut from a larger number", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.create("/number", "1");
    const config_value<int> number(zk, "/number");
    ensemble.run(number.ready());
    ensemble.set("/number", "8589934593");
    CHECK(ensemble.run(code_of(update_number(number))) == errc::invalid_argument);
    CHECK(ensemble.data("/number") == "8589934593");
    ensemble.run_for(1s);
    CHECK(*number.value() == 1);  // the last good one
    REQUIRE(number.last_error());
    CHECK(std::string(number.last_error()->what()).find("8589934593 would become 1") != std::string::npos);
    ensemble.set("/number", "2");
    ensemble.run(update_number(number));
    CHECK(ensemble.data("/number") == "3");
}

TEST_CASE("config_value: update() does not lose members that a later version of the program has written", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const std::string newer = R"({"connections":7,"timeout":5})";
    ensemble.create("/limits", newer);
    const config_value<limits> value(zk, "/limits");
    ensemble.run(value.ready());
    CHECK(value.value()->connections == 7);
    CHECK(ensemble.run(code_of(update_limits(value))) == errc::invalid_argument);
    CHECK(ensemble.data("/limits") == newer);
}

TEST_CASE("config_value: update() does not write the first enumerator over one that is misspelt", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    ensemble.create("/mode", R"("read-write")");
    const config_value<open_mode> mode(zk, "/mode");
    ensemble.run(mode.ready());
    const std::string misspelt = R"("read-wirte")";
    ensemble.set("/mode", misspelt);
    CHECK(ensemble.run(code_of(update_mode(mode))) == errc::invalid_argument);
    ensemble.run_for(1s);
    CHECK(ensemble.data("/mode") == misspelt);
    CHECK(*mode.value() == open_mode::read_write);  // the last good one
}

TEST_CASE("config_value: update() does not drop a member that an object has twice", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const std::string twice = R"({"connections":7,"connections":8})";
    ensemble.create("/limits", R"({"connections":6})");
    const config_value<limits> value(zk, "/limits");
    ensemble.run(value.ready());
    ensemble.set("/limits", twice);
    CHECK(ensemble.run(code_of(update_limits(value))) == errc::invalid_argument);
    CHECK(ensemble.data("/limits") == twice);
}
