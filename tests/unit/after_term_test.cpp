#include "support/catch.hpp"

#include <zkasio/election/detail/after_term.hpp>
#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <stdexcept>

using namespace zkasio;
using namespace zkasio::election_detail;

namespace {

enum class finally { leads, has_resigned, has_lost };

term_end ended(finally how, std::exception_ptr failure = nullptr) {
    return {how == finally::leads, how == finally::has_resigned, std::move(failure)};
}

struct body_failures {
    std::exception_ptr ours = std::make_exception_ptr(error(errc::session_expired, "get", "/a"));
    std::exception_ptr cancelled = std::make_exception_ptr(std::system_error(asio::error::operation_aborted));
    std::exception_ptr code = std::make_exception_ptr(std::system_error(std::make_error_code(std::errc::io_error)));
    std::exception_ptr other = std::make_exception_ptr(std::logic_error("wrong"));
};

std::exception_ptr thrown_on_loss(const std::exception_ptr& by_body) {
    try {
        throw_with_body_failure(error(errc::lock_lost, "with_lock", "/e/leader"), by_body);
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace

TEST_CASE("after a term: a body that has ended by itself completes or stands again", "[election]") {
    CHECK(decide(ended(finally::leads), false) == after_term::complete);
    CHECK(decide(ended(finally::leads), true) == after_term::stand_again);
    CHECK(decide(ended(finally::has_resigned), false) == after_term::complete);
    CHECK(decide(ended(finally::has_resigned), true) == after_term::stand_again);
}

TEST_CASE("after a term: whatever a body throws while it leads is its failure", "[election]") {
    const body_failures thrown;
    for (const bool requeue : {false, true})
        for (const std::exception_ptr& failure : {thrown.ours, thrown.cancelled, thrown.code, thrown.other}) {
            CHECK(decide(ended(finally::leads, failure), requeue) == after_term::fail);
            CHECK(decide(ended(finally::has_resigned, failure), requeue) == after_term::fail);
        }
}

TEST_CASE("after a term: after a loss only what the loss does not explain is a failure", "[election]") {
    const body_failures thrown;
    for (const bool requeue : {false, true}) {
        CHECK(decide(ended(finally::has_lost), requeue) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.ours), requeue) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.cancelled), requeue) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.code), requeue) == after_term::fail);
        CHECK(decide(ended(finally::has_lost, thrown.other), requeue) == after_term::fail);
    }
}

TEST_CASE("after a term: what the body has thrown is found in the loss", "[election]") {
    const body_failures thrown;
    CHECK(failure_in_loss(thrown.other) == thrown.other);
    CHECK(failure_in_loss(thrown.ours) == thrown.ours);
    CHECK(failure_in_loss(thrown.cancelled) == thrown.cancelled);
    CHECK(failure_in_loss(thrown_on_loss(nullptr)) == nullptr);
    CHECK(failure_in_loss(thrown_on_loss(thrown.cancelled)) == nullptr);
    CHECK(failure_in_loss(thrown_on_loss(thrown.other)) == thrown.other);
    CHECK(failure_in_loss(thrown_on_loss(thrown.ours)) == thrown.ours);
}
