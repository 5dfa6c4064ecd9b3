#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>

#include <asio/error.hpp>

#include <string>
#include <system_error>

namespace without_trace_tests {

using namespace zkasio;

template <class Failure>
error rethrown(const Failure& failed) {
    error seen(zk_errc::system_error, "nothing was thrown");
    try {
        try {
            throw failed;
        } catch (...) {
            rethrow_without_trace("enter", "/b");
        }
    } catch (const error& e) {
        seen = e;
    }
    return seen;
}

TEST_CASE("rethrow_without_trace: the request that was under way does not matter", "[recipe]") {
    for (const std::error_code code : {make_error_code(zk_errc::connection_loss), make_error_code(errc::not_connected),
                                       make_error_code(errc::session_expired)}) {
        const error e = rethrown(error(code, "create", "/b/me", "why", true));
        CHECK(e.code() == code);
        CHECK(e.operation() == "enter");
        CHECK(e.path() == "/b");
        CHECK(e.hint() == "why");
        CHECK_FALSE(e.outcome_unknown());
    }
    const error cancelled = rethrown(error(asio::error::operation_aborted, "create", "/b/me", "", true));
    CHECK(cancelled.path() == "/b");
    CHECK_FALSE(cancelled.outcome_unknown());
    CHECK(rethrown(std::system_error(asio::error::operation_aborted)).path() == "/b");  // of a timer
}

TEST_CASE("rethrow_without_trace: other errors keep the node that they are about", "[recipe]") {
    const error refused = rethrown(error(zk_errc::no_auth, "create", "/b/me"));
    CHECK(refused.operation() == "enter");
    CHECK(refused.path() == "/b/me");
    // Whoever repeats what is retryable has to know that it would be in vain.
    const error hung_up = rethrown(error::hung_up_at("create", "/b/me", 5000, false));
    CHECK(hung_up.hung_up());
    CHECK(hung_up.operation() == "enter");
}

}  // namespace without_trace_tests
