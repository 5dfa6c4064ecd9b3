#include "support/catch.hpp"

#include <zkasio/election/detail/candidacy.hpp>
#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <stdexcept>
#include <vector>

using namespace zkasio;
using namespace zkasio::election_detail;

namespace {

enum class finally { leads, has_resigned, has_lost };

term_end ended(finally how, std::exception_ptr failure = nullptr) {
    return {how == finally::leads, how == finally::has_resigned, std::move(failure)};
}

lead_options with_requeue(bool requeue) { return requeue ? lead_options().requeue() : lead_options(); }

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
    CHECK(decide(ended(finally::leads), lead_options()) == after_term::complete);
    CHECK(decide(ended(finally::leads), lead_options().requeue()) == after_term::stand_again);
    CHECK(decide(ended(finally::has_resigned), lead_options()) == after_term::complete);
    CHECK(decide(ended(finally::has_resigned), lead_options().requeue()) == after_term::stand_again);
}

TEST_CASE("after a term: whatever a body throws while it leads is its failure", "[election]") {
    const body_failures thrown;
    for (const bool requeue : {false, true})
        for (const std::exception_ptr& failure : {thrown.ours, thrown.cancelled, thrown.code, thrown.other}) {
            CHECK(decide(ended(finally::leads, failure), with_requeue(requeue)) == after_term::fail);
            CHECK(decide(ended(finally::has_resigned, failure), with_requeue(requeue)) == after_term::fail);
        }
}

TEST_CASE("after a term: after a loss only what the loss does not explain is a failure", "[election]") {
    const body_failures thrown;
    for (const bool requeue : {false, true}) {
        CHECK(decide(ended(finally::has_lost), with_requeue(requeue)) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.ours), with_requeue(requeue)) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.cancelled), with_requeue(requeue)) == after_term::stand_again);
        CHECK(decide(ended(finally::has_lost, thrown.code), with_requeue(requeue)) == after_term::fail);
        CHECK(decide(ended(finally::has_lost, thrown.other), with_requeue(requeue)) == after_term::fail);
    }
}

TEST_CASE("after a term: a lost connection is no failure of the body unless it is asked for", "[election]") {
    const std::vector<std::exception_ptr> of_connection{
        std::make_exception_ptr(error(zk_errc::connection_loss, "multi", "/a", {}, true)),
        std::make_exception_ptr(error(zk_errc::throttled, "get", "/a")),
        std::make_exception_ptr(error(errc::not_connected, "get", "/a")),
        std::make_exception_ptr(error(errc::timed_out, "set", "/a", {}, true)),
        std::make_exception_ptr(std::system_error(make_error_code(zk_errc::connection_loss))),
    };
    for (const bool requeue : {false, true})
        for (const finally how : {finally::leads, finally::has_resigned})
            for (const std::exception_ptr& failure : of_connection) {
                lead_options options = with_requeue(requeue);
                CHECK(decide(ended(how, failure), options) == after_term::pause_and_stand_again);
                CHECK(decide(ended(how, failure), options.fail_with_connection()) == after_term::fail);
            }
    // Another lock of the body was lost: that this has interrupted a write of the body changes nothing.
    for (const errc code : {errc::lock_lost, errc::revoked})
        for (const bool unknown : {false, true}) {
            const auto failure = std::make_exception_ptr(error(code, "with_lock", "/other", {}, unknown));
            CHECK(decide(ended(finally::leads, failure), lead_options()) == after_term::fail);
        }
    // A failure that lasts, with the news of another task's write, or of the first half of the work.
    for (const zk_errc code : {zk_errc::no_node, zk_errc::no_auth, zk_errc::bad_version}) {
        const std::exception_ptr failure = std::make_exception_ptr(error(code, "get", "/missing", {}, true));
        CHECK(decide(ended(finally::leads, failure), lead_options()) == after_term::fail);
    }
    // The caller has cancelled, or closed the client: that a write may have been applied changes nothing.
    for (const std::error_code code : {std::error_code(asio::error::operation_aborted),
                                       make_error_code(errc::client_closed), make_error_code(errc::session_expired)}) {
        const std::exception_ptr failure = std::make_exception_ptr(error(code, "set", "/a", {}, true));
        CHECK(decide(ended(finally::leads, failure), lead_options()) == after_term::fail);
    }
}

TEST_CASE("after a term: a body that had returned before the loss does not run again", "[election]") {
    term_end end = ended(finally::has_lost);
    end.completed = true;
    CHECK(decide(end, lead_options()) == after_term::complete);
    CHECK(decide(end, lead_options().requeue()) == after_term::stand_again);
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
