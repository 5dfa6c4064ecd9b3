#include "support/catch.hpp"

#include <zkasio/recipe/detail/receipt_rules.hpp>

#include <asio/error.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace receipt_rules_tests {

using namespace zkasio;
using namespace zkasio::detail;

namespace {

error failed(std::error_code code, const std::string& path = "/n", bool unknown = false) {
    return error(code, "put", path, {}, unknown);
}

std::optional<node_data> node(std::int32_t version, std::string data) {
    node_data d;
    d.data = std::move(data);
    d.stat.version = version;
    return d;
}

}  // namespace

TEST_CASE("receipt_rules: a failure that may pass is repeated, one that ends everything is not") {
    for (const bool maybe_applied : {false, true}) {
        CHECK(next_after(failed(zk_errc::connection_loss), "/r", maybe_applied) == after_failure::repeat);
        CHECK(next_after(failed(zk_errc::connection_loss, "/n", true), "/r", true) == after_failure::repeat);
        CHECK(next_after(failed(zk_errc::throttled), "/r", maybe_applied) == after_failure::repeat);
        CHECK(next_after(failed(errc::session_expired), "/r", maybe_applied) == after_failure::give_up);
        CHECK(next_after(failed(errc::client_closed), "/r", maybe_applied) == after_failure::give_up);
    }
    CHECK(next_after(failed(asio::error::operation_aborted, "/n", true), "/r", true) == after_failure::give_up);
    CHECK(next_after(failed(asio::error::operation_aborted), "/r", false) == after_failure::refused);
}

TEST_CASE("receipt_rules: R1, a refusal counts unless an earlier attempt may have been applied") {
    CHECK(next_after(failed(zk_errc::bad_version), "/r", false) == after_failure::refused);
    CHECK(next_after(failed(zk_errc::bad_version), "/r", true) == after_failure::find_out);
    CHECK(next_after(failed(zk_errc::no_node, "/r"), "/r", false) == after_failure::no_receipt);
    CHECK(next_after(failed(zk_errc::bad_version, "/r"), "/r", false) == after_failure::no_receipt);
    CHECK(next_after(failed(zk_errc::bad_version, "/r"), "/r", true) == after_failure::find_out);
    CHECK(next_after(failed(zk_errc::no_auth, "/r"), "/r", false) == after_failure::refused);
}

TEST_CASE("receipt_rules: R1, a transaction at which the servers hang up is not repeated before it is known") {
    const error hung_up = error::hung_up_at("put", "/n", 5000, true);
    CHECK(next_after(hung_up, "/r", true) == after_failure::find_out);
    CHECK(next_after(hung_up.not_applied(), "/r", false) == after_failure::repeat);
}

TEST_CASE("receipt_rules: R2, a receipt says that its transaction was applied, or not, or nothing") {
    CHECK(read_receipt(node(3, "3"), 3, "4") == receipt_says::not_applied);
    CHECK(read_receipt(node(4, "4"), 3, "4") == receipt_says::applied);
    CHECK(read_receipt(node(4, "theirs"), 3, "4") == receipt_says::nothing);
    CHECK(read_receipt(node(5, "4"), 3, "4") == receipt_says::nothing);
    CHECK(read_receipt(node(2, "2"), 3, "4") == receipt_says::nothing);
    CHECK(read_receipt(std::nullopt, 3, "4") == receipt_says::nothing);
}

TEST_CASE("receipt_rules: R3, a receipt whose version would become negative serves no other transaction") {
    CHECK(can_serve_again(0));
    CHECK(can_serve_again(std::numeric_limits<std::int32_t>::max() - 1));
    CHECK_FALSE(can_serve_again(std::numeric_limits<std::int32_t>::max()));
}

}  // namespace receipt_rules_tests
