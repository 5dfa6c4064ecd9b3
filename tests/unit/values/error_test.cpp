#include "unit/support/error_of.hpp"

#include <zkasio/error.hpp>

#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>

#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

using namespace zkasio;
using zkasio::test::has;
using namespace std::string_literals;

namespace {

const std::vector<zk_errc> all_zk_codes{zk_errc::ok,
                                        zk_errc::system_error,
                                        zk_errc::runtime_inconsistency,
                                        zk_errc::data_inconsistency,
                                        zk_errc::connection_loss,
                                        zk_errc::marshalling_error,
                                        zk_errc::unimplemented,
                                        zk_errc::operation_timeout,
                                        zk_errc::bad_arguments,
                                        zk_errc::invalid_state,
                                        zk_errc::new_config_no_quorum,
                                        zk_errc::reconfig_in_progress,
                                        zk_errc::no_node,
                                        zk_errc::no_auth,
                                        zk_errc::bad_version,
                                        zk_errc::no_children_for_ephemerals,
                                        zk_errc::node_exists,
                                        zk_errc::not_empty,
                                        zk_errc::session_expired,
                                        zk_errc::invalid_callback,
                                        zk_errc::invalid_acl,
                                        zk_errc::auth_failed,
                                        zk_errc::closing,
                                        zk_errc::session_moved,
                                        zk_errc::not_read_only,
                                        zk_errc::ephemeral_on_local_session,
                                        zk_errc::no_watcher,
                                        zk_errc::reconfig_disabled,
                                        zk_errc::session_requires_sasl,
                                        zk_errc::quota_exceeded,
                                        zk_errc::throttled};

const std::vector<errc> all_codes{errc::session_expired,  errc::client_closed, errc::not_connected,
                                  errc::lock_lost,        errc::lock_released, errc::invalid_path,
                                  errc::invalid_argument, errc::too_large,
                                  errc::foreign_child,    errc::would_deadlock, errc::revoked,
                                  errc::forked,           errc::timed_out,     errc::too_many_members,
                                  errc::too_many_ephemerals};

template <class Code>
std::vector<std::error_code> those_that_are(const std::vector<Code>& codes, condition c) {
    std::vector<std::error_code> matching;
    for (const Code code : codes)
        if (make_error_code(code) == c) matching.push_back(code);
    return matching;
}

using codes = std::vector<std::error_code>;

}  // namespace

TEST_CASE("error: every code has a text of its own", "[error]") {
    std::set<std::string> texts;
    for (const zk_errc c : all_zk_codes) texts.insert("zk: " + make_error_code(c).message());
    for (const errc c : all_codes) texts.insert("zkasio: " + make_error_code(c).message());
    CHECK(texts.size() == all_zk_codes.size() + all_codes.size());
    for (const std::string& text : texts) CHECK_FALSE(has(text, "error "));

    CHECK(make_error_code(zk_errc::no_node).message() == "no such node");
    CHECK(make_error_code(zk_errc::no_auth).message() == "no permission");
    CHECK(std::error_code(-999, zookeeper_category()).message() == "ZooKeeper error -999");
    CHECK(std::error_code(999, zkasio_category()).message() == "zkasio error 999");
    CHECK(make_error_condition(condition::retryable).message() != "");
    CHECK(std::error_condition(99, condition_category()).message() == "unknown condition");

    CHECK(zookeeper_category().name() == "zookeeper"s);
    CHECK(zkasio_category().name() == "zkasio"s);
    CHECK(condition_category().name() == "zkasio.condition"s);
}

TEST_CASE("error: the values are those of the C client", "[error]") {
    CHECK(static_cast<int>(zk_errc::connection_loss) == -4);
    CHECK(static_cast<int>(zk_errc::no_node) == -101);
    CHECK(static_cast<int>(zk_errc::session_expired) == -112);
    CHECK(static_cast<int>(zk_errc::no_watcher) == -121);
    CHECK(static_cast<int>(zk_errc::quota_exceeded) == -125);
    CHECK_FALSE(make_error_code(zk_errc::ok));
    CHECK(make_error_code(zk_errc::session_expired) != make_error_code(errc::session_expired));
}

TEST_CASE("error: outcome_unknown is what a request that was sent can end with unanswered", "[error]") {
    // Fact 13: most of -1 to -15, closing, session expired, auth failed; everything else is a server's answer.
    std::set<int> unknown{-112, -115, -116};
    for (int v = -15; v <= -1; ++v) unknown.insert(v);
    for (const zk_errc answered :
         {zk_errc::unimplemented, zk_errc::bad_arguments, zk_errc::new_config_no_quorum, zk_errc::reconfig_in_progress})
        unknown.erase(static_cast<int>(answered));
    for (int v = -140; v <= 5; ++v) {
        INFO(v);
        CHECK((std::error_code(v, zookeeper_category()) == condition::outcome_unknown) == (unknown.count(v) == 1));
    }
    CHECK(those_that_are(all_codes, condition::outcome_unknown)
              .empty());  // only error::outcome_unknown() knows, see there
    // The same numbers of other categories mean other things.
    CHECK(std::error_code(-4, std::generic_category()) != condition::outcome_unknown);
    CHECK(std::error_code() != condition::outcome_unknown);
}

TEST_CASE("error: retryable", "[error]") {
    CHECK(those_that_are(all_zk_codes, condition::retryable) ==
          codes{zk_errc::runtime_inconsistency, zk_errc::connection_loss, zk_errc::operation_timeout,
                zk_errc::reconfig_in_progress, zk_errc::session_moved, zk_errc::throttled});
    CHECK(those_that_are(all_codes, condition::retryable) == codes{errc::not_connected});
    CHECK(std::error_code() != condition::retryable);
    CHECK(make_error_code(asio::error::operation_aborted) != condition::retryable);
}

TEST_CASE("error: session_ended", "[error]") {
    CHECK(those_that_are(all_zk_codes, condition::session_ended) ==
          codes{zk_errc::session_expired, zk_errc::auth_failed, zk_errc::closing, zk_errc::session_requires_sasl});
    CHECK(those_that_are(all_codes, condition::session_ended) ==
          codes{errc::session_expired, errc::client_closed, errc::forked});
    CHECK(std::error_code() != condition::session_ended);
}

TEST_CASE("error: cancelled", "[error]") {
    CHECK(make_error_code(asio::error::operation_aborted) == condition::cancelled);
    CHECK(those_that_are(all_zk_codes, condition::cancelled).empty());
    CHECK(those_that_are(all_codes, condition::cancelled).empty());
    CHECK(std::error_code() != condition::cancelled);
}

TEST_CASE("error: what() names operation, path, reason and hint", "[error]") {
    const error plain(zk_errc::no_auth, "create", "/locks/orders");
    CHECK(plain.what() == "create /locks/orders: no permission"s);
    CHECK(plain.code() == zk_errc::no_auth);
    CHECK(plain.operation() == "create");
    CHECK(plain.path() == "/locks/orders");
    CHECK_FALSE(plain.outcome_unknown());

    CHECK(error(errc::client_closed, "close").what() == "close: client closed"s);
    CHECK(error(errc::invalid_path, "get", "a", "a path starts with '/'").what() ==
          "get a: invalid path (a path starts with '/')"s);
    CHECK(error(errc::invalid_path, "get", "a", "a path (a name) starts with '/'").hint() ==
          "a path (a name) starts with '/'");
    CHECK(plain.hint().empty());
    CHECK(error(asio::error::operation_aborted, "get", "/a").what() == "get /a: cancelled"s);
}

TEST_CASE("error: an unknown outcome is said", "[error]") {
    const error lost(zk_errc::connection_loss, "set", "/a", {}, true);
    CHECK(lost.outcome_unknown());
    CHECK(lost.what() == "set /a: connection lost; it may or may not have been applied"s);
    const error hinted(zk_errc::connection_loss, "set", "/a", "why", true);
    CHECK(hinted.what() == "set /a: connection lost (why); it may or may not have been applied"s);
    // It is the request that was sent or not, whatever the code says.
    CHECK_FALSE(error(zk_errc::connection_loss, "set", "/a").outcome_unknown());
    CHECK(error(errc::client_closed, "set", "/a", {}, true).outcome_unknown());
    CHECK(error(asio::error::operation_aborted, "set", "/a", {}, true).outcome_unknown());
}

TEST_CASE("error: a hint that says the same as the code is left out", "[error]") {
    CHECK(error(errc::session_expired, "hold", "/a", "session expired").what() == "hold /a: session expired"s);
    CHECK(error(errc::lock_lost, "hold", "/a", "session expired").what() == "hold /a: lock lost (session expired)"s);
    CHECK(error(asio::error::operation_aborted, "get", "/a", "cancelled").what() == "get /a: cancelled"s);
}

TEST_CASE("error: control characters of a path do not reach a log", "[error]") {
    const error e(errc::invalid_path, "get", "/a\0b\n\x1b[31m\x7f\x1f c\xc3\xbc"s);
    CHECK(e.what() == "get /a\\x00b\\x0a\\x1b[31m\\x7f\\x1f c\xc3\xbc: invalid path"s);
    CHECK(e.path() == "/a\0b\n\x1b[31m\x7f\x1f c\xc3\xbc"s);  // as it was given

    // A hint may quote what somebody gave us, too.
    const error hinted(errc::invalid_argument, "client options", {}, "server \"zk\0\n\": why"s);
    CHECK(hinted.what() == "client options: invalid argument (server \"zk\\x00\\x0a\": why)"s);
}

TEST_CASE("error: a copy does not throw, and shares the text", "[error]") {
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<error>);
    STATIC_REQUIRE(std::is_nothrow_copy_assignable_v<error>);
    STATIC_REQUIRE(std::is_base_of_v<std::system_error, error>);

    std::optional<error> first(std::in_place, zk_errc::no_node, "get", "/a", "hint", true);
    const error copy = *first;
    CHECK(copy.what() == first->what());
    first.reset();
    CHECK(copy.what() == "get /a: no such node (hint); it may or may not have been applied"s);
    CHECK(copy.code() == zk_errc::no_node);
    CHECK(copy.path() == "/a");
    CHECK(copy.outcome_unknown());

    const std::optional<error> caught = test::error_of([&] { throw copy; });
    REQUIRE(caught);
    CHECK(caught->what() == copy.what());
}

TEST_CASE("a reason that is the same as the code is told once", "[error]") {
    CHECK(std::string(error(errc::session_expired, "hold", "/a", "session expired").what()) ==
          "hold /a: session expired");
    CHECK(std::string(error(errc::client_closed, "with_session", {}, "client closed").what()) ==
          "with_session: client closed");
    CHECK(std::string(error(errc::lock_lost, "hold", "/a", "node deleted").what()) ==
          "hold /a: lock lost (node deleted)");
}

TEST_CASE("error: a step of an operation gets its name, and its path where that is about the whole", "[error]") {
    const auto renamed = [](const error& e) {
        return test::failure_of([&] {
            try {
                throw e;
            } catch (...) {
                rethrow_as("put", "/q");
            }
        });
    };
    CHECK(renamed(error(zk_errc::no_auth, "create", "/q", "why", true)) ==
          "put /q: no permission (why); it may or may not have been applied");
    CHECK(renamed(error(errc::invalid_argument, "names", {}, "why")) == "put /q: invalid argument (why)");
    CHECK(renamed(error(zk_errc::no_node, "get", "/a")) == "put /a: no such node");
    CHECK(renamed(error(errc::session_expired, "get", "/a")) == "put /q: session expired");
}

TEST_CASE("error: a wait gets the name of its operation, also if a timer was cancelled", "[error]") {
    const auto renamed = [](const auto& e) {
        return test::failure_of([&] {
            try {
                throw e;
            } catch (...) {
                rethrow_as("put", "/q");
            }
        });
    };
    CHECK(renamed(error(errc::client_closed, "wait")) == "put /q: client closed");
    CHECK(renamed(std::system_error(asio::error::operation_aborted)) == "put /q: cancelled");
    const std::system_error other(std::make_error_code(std::errc::io_error));
    CHECK(renamed(other) == other.what());
    CHECK(renamed(std::runtime_error("of the body")) == "of the body");
}

TEST_CASE("error: an unknown outcome is found wherever it is nested", "[error]") {
    const auto nested_in = [](const auto& outer, const std::exception_ptr& inner) {
        try {
            try {
                std::rethrow_exception(inner);
            } catch (...) {
                std::throw_with_nested(outer);
            }
        } catch (...) {
            return std::current_exception();
        }
    };
    const auto unknown = std::make_exception_ptr(error(asio::error::operation_aborted, "set", "/a", {}, true));
    const auto known = std::make_exception_ptr(error(zk_errc::no_node, "set", "/a"));
    CHECK(leaves_outcome_unknown(unknown));
    CHECK(leaves_outcome_unknown(nested_in(std::runtime_error("mine"), unknown)));
    CHECK(leaves_outcome_unknown(nested_in(error(errc::lock_lost, "run"), unknown)));
    CHECK(leaves_outcome_unknown(nested_in(error(errc::revoked, "run"), nested_in(std::runtime_error("x"), unknown))));
    CHECK(leaves_outcome_unknown(std::make_exception_ptr(asio::multiple_exceptions(unknown))));
    CHECK(leaves_outcome_unknown(std::make_exception_ptr(asio::multiple_exceptions(known))));  // hides the second one
    CHECK_FALSE(leaves_outcome_unknown(nullptr));
    CHECK_FALSE(leaves_outcome_unknown(known));
    CHECK_FALSE(leaves_outcome_unknown(nested_in(std::runtime_error("mine"), known)));
    CHECK_FALSE(leaves_outcome_unknown(std::make_exception_ptr(std::runtime_error("mine"))));
    CHECK_FALSE(leaves_outcome_unknown(std::make_exception_ptr(7)));
}

TEST_CASE("error: what cancels a body has the outcome of the body's write", "[error]") {
    const auto thrown = [](const std::exception_ptr& body) {
        return test::failure_of([&] { throw_with_body_failure(error(errc::lock_lost, "run", "/l", "why"), body); });
    };
    const auto of_body = [](bool unknown) {
        return std::make_exception_ptr(error(asio::error::operation_aborted, "set", "/a", {}, unknown));
    };
    CHECK(thrown(nullptr) == "run /l: lock lost (why)");
    CHECK(thrown(of_body(false)) == "run /l: lock lost (why)");
    CHECK(thrown(of_body(true)) ==
          "run /l: lock lost (why; a write of the body was under way); it may or may not have been applied");
}

TEST_CASE("error: of a request at which the servers hang up", "[error]") {
    const error lost = error::hung_up_at("put", "/q", 5000, true);
    CHECK(lost.code() == zk_errc::connection_loss);
    CHECK(lost.hung_up());
    CHECK(lost.outcome_unknown());
    CHECK(std::string(lost.what()) ==
          "put /q: connection lost (each of 5 connections ended with this request of 5000 bytes: is it larger than the "
          "servers' jute.maxbuffer, or a request that they do not know?); it may or may not have been applied");
    const error none = lost.not_applied();
    CHECK(none.hung_up());
    CHECK_FALSE(none.outcome_unknown());
    CHECK(std::string(none.what()) ==
          "put /q: connection lost (each of 5 connections ended with this request of 5000 bytes, which was not "
          "applied: is it larger than the servers' jute.maxbuffer, or a request that they do not know?)");
    const error other = none.renamed("join", "/g");
    CHECK(other.hung_up());
    CHECK(other.operation() == "join");
    CHECK(other.path() == "/g");
    CHECK(other.hint() == none.hint());
    const error cut(zk_errc::connection_loss, "put", "/q", "cut", true);
    CHECK_FALSE(cut.hung_up());
    CHECK_FALSE(cut.renamed("join", "/g").hung_up());
    CHECK(cut.renamed("join", "/g").outcome_unknown());
    CHECK_FALSE(cut.not_applied().outcome_unknown());
    CHECK(cut.not_applied().hint() == "cut");
}
