#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>

#include <asio/error.hpp>

#include <exception>
#include <stdexcept>
#include <system_error>

namespace fresh_copy_of_tests {

using namespace zkasio;

namespace {

// The object, which lives as long as `thrown` does.
template <class Exception>
const Exception* object_in(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Exception& e) {
        return &e;
    } catch (...) {
        return nullptr;
    }
}

}  // namespace

TEST_CASE("fresh_copy_of: an object of its own, with all that the error says", "[recipe]") {
    const auto failed = std::make_exception_ptr(error(zk_errc::connection_loss, "set", "/a", "a hint", true));
    const std::exception_ptr copy = fresh_copy_of(failed);
    const auto* const said = object_in<error>(copy);
    REQUIRE(said);
    CHECK(said != object_in<error>(failed));
    CHECK(said->path() == "/a");
    CHECK(said->hint() == "a hint");
    CHECK(said->outcome_unknown());
}

TEST_CASE("fresh_copy_of: asio's errors are copied, too", "[recipe]") {
    const auto cancelled = std::make_exception_ptr(std::system_error(asio::error::operation_aborted));
    const std::exception_ptr copy = fresh_copy_of(cancelled);
    REQUIRE(object_in<std::system_error>(copy));
    CHECK(object_in<std::system_error>(copy)->code() == asio::error::operation_aborted);
    CHECK(object_in<std::system_error>(copy) != object_in<std::system_error>(cancelled));
}

TEST_CASE("fresh_copy_of: a user's exception is passed on, and nothing stays nothing", "[recipe]") {
    const auto failed = std::make_exception_ptr(std::runtime_error("it is broken"));
    CHECK(fresh_copy_of(failed) == failed);
    CHECK(!fresh_copy_of(nullptr));
}

}  // namespace fresh_copy_of_tests
