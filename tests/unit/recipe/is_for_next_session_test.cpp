#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>

namespace is_for_next_session_tests {

using namespace zkasio;

TEST_CASE("is_for_next_session: a write that the end of its session has certainly prevented") {
    CHECK(is_for_next_session(error(errc::session_expired, "set", "/a")));
    CHECK_FALSE(is_for_next_session(error(errc::session_expired, "set", "/a", "", true)));
    CHECK_FALSE(is_for_next_session(error(errc::client_closed, "set", "/a")));
    CHECK_FALSE(is_for_next_session(error(zk_errc::connection_loss, "set", "/a")));
}

}  // namespace is_for_next_session_tests
