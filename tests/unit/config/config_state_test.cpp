#include "support/catch.hpp"

#include <zkasio/config/detail/state_after.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace zkasio;
using namespace zkasio::config_detail;

namespace {

using value_ptr_of_test = std::shared_ptr<const void>;

value_ptr_of_test parse_number(std::string_view text) {
    return std::make_shared<const int>(std::stoi(std::string(text)));
}

node_report said(std::string data, std::int32_t version) {
    node_report report;
    report.answer.data = std::move(data);
    report.answer.stat.version = version;
    return report;
}

node_report said(std::error_code code) {
    node_report report;
    report.mark.code = code;
    return report;
}

config_state after(const config_state& last, const node_report& report, value_ptr_of_test fallback = nullptr) {
    return state_after(last, report, "/a", parse_number, fallback);
}

int number_in(const config_state& state) { return *std::static_pointer_cast<const int>(state.value); }

}  // namespace

TEST_CASE("config: a value that can be read replaces the last one and its problem") {
    const config_state first = after(config_state(), said("1", 0));
    CHECK(number_in(first) == 1);
    CHECK(first.version == 0);
    CHECK(first.number == 1);
    CHECK_FALSE(first.problem);
    const config_state mended = after(after(first, said("nonsense", 1)), said("2", 2));
    CHECK(number_in(mended) == 2);
    CHECK_FALSE(mended.problem);
    CHECK(mended.number == 3);
}

TEST_CASE("config: nonsense keeps the last good value and tells the version of what the node holds") {
    const config_state bad = after(after(config_state(), said("1", 0)), said("nonsense", 7));
    CHECK(number_in(bad) == 1);
    CHECK(bad.version == 7);
    REQUIRE(bad.problem);
    CHECK(bad.problem->code() == errc::invalid_argument);
    CHECK(std::string(bad.problem->what()).find("config /a: ") == 0);
    CHECK(std::string(bad.problem->what()).find("version 7 is refused: stoi") != std::string::npos);
}

TEST_CASE("config: what a parser throws is cut to what somebody reads, and need not be an exception") {
    const auto verbose = [](std::string_view) -> value_ptr_of_test {
        throw std::runtime_error(std::string(1000000, 'x'));
    };
    config_state state = state_after(config_state(), said("x", 0), "/a", verbose, nullptr);
    CHECK(std::string(state.problem->what()).size() < 500);
    CHECK_FALSE(state.value);
    const auto strange = [](std::string_view) -> value_ptr_of_test { throw 42; };
    state = state_after(config_state(), said("x", 0), "/a", strange, nullptr);
    CHECK(std::string(state.problem->what()).find("no std::exception") != std::string::npos);
}

TEST_CASE("config: without a node the default counts, and without a default the last good value") {
    const config_state good = after(config_state(), said("1", 3));
    const config_state kept = after(good, said(zk_errc::no_node));
    CHECK(number_in(kept) == 1);
    CHECK(kept.version == no_node_version);
    REQUIRE(kept.problem);
    CHECK(kept.problem->code() == zk_errc::no_node);
    const config_state fallen_back = after(good, said(zk_errc::no_node), std::make_shared<const int>(9));
    CHECK(number_in(fallen_back) == 9);
    CHECK_FALSE(fallen_back.problem);
}

TEST_CASE("config: data that an ACL keeps from us keep the last good value") {
    const config_state state = after(after(config_state(), said("1", 3)), said(zk_errc::no_auth));
    CHECK(number_in(state) == 1);
    CHECK(state.version == 3);
    REQUIRE(state.problem);
    CHECK(state.problem->code() == zk_errc::no_auth);
}

TEST_CASE("config: the failure of a request is told as that of set() with all that is known of it") {
    const auto text = [](const error& e) { return std::string(failure_of("set", "/a", e).what()); };
    const error cut(errc::not_connected, "create_or_set", "/a", "10.0.0.1:2181 (db): refused");
    CHECK(text(cut) == text(error(errc::not_connected, "set", "/a", "10.0.0.1:2181 (db): refused")));
    CHECK(text(cut).find("(10.0.0.1:2181 (db): refused)") != std::string::npos);
    CHECK(text(cut).find("create_or_set") == std::string::npos);
    const error lost(zk_errc::connection_loss, "create_or_set", "/a", "no answer", true);
    CHECK(failure_of("set", "/a", lost).outcome_unknown());
    CHECK(text(lost) == error(zk_errc::connection_loss, "set", "/a", "no answer", true).what());
    CHECK(text(error(zk_errc::no_auth, "set", "/a")) == error(zk_errc::no_auth, "set", "/a").what());
    CHECK(text(error(zk_errc::no_node, "create", "/a", "ask for create_options::parents()")).find("create_with()") !=
          std::string::npos);
    const std::string no_chroot = "the chroot \"/x\" does not exist: see client_options::create_chroot()";
    CHECK(text(error(zk_errc::no_node, "create", "/a", no_chroot)).find(no_chroot) != std::string::npos);
}
