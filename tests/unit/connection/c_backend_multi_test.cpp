// Transactions through the C library, which ends the process for some that it should refuse (fact 16).

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

enum step_type : std::int32_t { create_step = 1, remove_step = 2, set_step = 5, check_step = 13, failed_step = -1 };

multi_request one_of_each() {
    multi_request m;
    m.ops = {create_request{"/c", "data", open_acl(), create_mode::ephemeral_sequential}, set_request{"/s", "set", 3},
             remove_request{"/r", 4}, check_op{"/k", 5}};
    return m;
}

struct multi_rig {
    explicit multi_rig(std::string chroot = {}) : c([&] {
        open_params p;
        p.chroot = std::move(chroot);
        return p;
    }()) {
        c.connect();
    }

    scripted_server::packet asked_by(const multi_request& m) {
        const std::error_code refused = c.b->submit(1, m);
        REQUIRE_FALSE(refused);
        c.b->end_batch();
        scripted_server::packet asked = c.server.read_packet();
        CHECK(asked.type == 14);
        return asked;
    }
    reply answered() {
        c.until_answered(1);
        REQUIRE(c.seen.replies[1].size() == 1);
        reply r = std::move(c.seen.replies[1].front());
        c.seen.replies.clear();
        return r;
    }

    connection c;
};

std::vector<std::error_code> codes_of(const reply& r) {
    std::vector<std::error_code> all;
    for (const multi_result& s : r.results) all.push_back(s.code);
    return all;
}

}  // namespace

TEST_CASE("c_backend: a transaction, and the result of each step") {
    const std::string chroot = GENERATE("", "/app", "/deep/er");
    multi_rig rig(chroot);
    const auto asked = rig.asked_by(one_of_each());
    jute_writer expected;
    expected.step(create_step).text(chroot + "/c").text("data").acl(open_acl()).number(3);
    expected.step(set_step).text(chroot + "/s").text("set").number(3);
    expected.step(remove_step).text(chroot + "/r").number(4);
    expected.step(check_step).text(chroot + "/k").number(5).end_of_steps();
    CHECK(asked.body == expected.bytes());
    jute_writer answer;
    answer.step(create_step, 0).text(chroot + "/c2147483647").step(set_step, 0).stat(some_stat());
    answer.step(remove_step, 0).step(check_step, 0).end_of_steps();
    rig.c.server.answer(asked, answer.bytes());
    const reply r = rig.answered();
    CHECK_FALSE(r.code);
    CHECK_FALSE(r.sent);
    CHECK(codes_of(r) == std::vector<std::error_code>(4));
    REQUIRE(r.results.size() == 4);
    CHECK(r.results[0].path == "/c2147483647");
    const bool same_stat = r.results[1].stat == some_stat();
    CHECK(same_stat);
    for (const std::size_t i : {0u, 2u, 3u}) CHECK_FALSE(r.results[i].stat);
    for (const std::size_t i : {1u, 2u, 3u}) CHECK(r.results[i].path.empty());
}

TEST_CASE("c_backend: a transaction that fails names the step, and the others were not done") {
    multi_rig rig;
    const std::size_t culprit = GENERATE(0u, 1u, 2u, 3u);
    const int code = GENERATE(-101, -102, -103, -110, -111, -4, -127);
    const auto asked = rig.asked_by(one_of_each());
    jute_writer answer;
    for (std::size_t i = 0; i < 4; ++i) {
        const int of_step = i < culprit ? 0 : i == culprit ? code : -2;
        answer.step(failed_step, of_step).number(of_step);
    }
    answer.end_of_steps();
    rig.c.server.answer(asked, answer.bytes());
    const reply r = rig.answered();
    const std::error_code failure = static_cast<zk_errc>(code);
    CHECK(r.code == failure);
    CHECK(r.sent == (code == -4));
    std::vector<std::error_code> expected(4, zk_errc::runtime_inconsistency);
    for (std::size_t i = 0; i < culprit; ++i) expected[i] = {};
    expected[culprit] = failure;
    CHECK(codes_of(r) == expected);
    for (const multi_result& s : r.results) {
        CHECK(s.path.empty());
        CHECK_FALSE(s.stat);
    }
}

TEST_CASE("c_backend: a transaction that is refused as a whole") {
    multi_rig rig;
    const int code = GENERATE(-5, -6, -119, -124);
    const auto asked = rig.asked_by(one_of_each());
    rig.c.server.answer(asked.xid, code);
    const reply r = rig.answered();
    CHECK(r.code == static_cast<zk_errc>(code));
    CHECK(r.sent == (code == -5));
    CHECK(codes_of(r) == std::vector<std::error_code>(4, static_cast<zk_errc>(code)));
}

TEST_CASE("c_backend: a transaction under way when the connection is lost may have been applied") {
    multi_rig rig;
    rig.asked_by(one_of_each());
    SECTION("lost") { rig.c.server.hang_up(); }
    SECTION("lost within the answer") {
        rig.c.server.send(jute_writer().number(100).bytes());
        rig.c.server.hang_up();
    }
    SECTION("aborted") { rig.c.b->abort_connection(); }
    SECTION("closed") { rig.c.b->close(); }
    const reply r = rig.answered();
    CHECK(r.code == zk_errc::connection_loss);
    CHECK(r.sent);
    for (const std::error_code& step : codes_of(r)) CHECK(step == zk_errc::connection_loss);
}

TEST_CASE("c_backend: a transaction without steps, and one with a thousand") {
    multi_rig rig;
    multi_request m;
    const auto empty = rig.asked_by(m);
    CHECK(empty.body == jute_writer().end_of_steps().bytes());
    rig.c.server.answer(empty, jute_writer().end_of_steps().bytes());
    CHECK_FALSE(rig.answered().code);
    for (int i = 0; i < 1000; ++i)
        m.ops.push_back(create_request{"/n" + std::to_string(i), "", open_acl(), create_mode::persistent});
    const auto many = rig.asked_by(m);
    jute_writer answer;
    for (int i = 0; i < 1000; ++i) answer.step(create_step, 0).text("/n" + std::to_string(i));
    rig.c.server.answer(many, answer.end_of_steps().bytes());
    const reply r = rig.answered();
    CHECK_FALSE(r.code);
    REQUIRE(r.results.size() == 1000);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(r.results[i].path == "/n" + std::to_string(i));
}

TEST_CASE("c_backend: the kinds of nodes that the library creates in no transaction are refused, and nothing is sent") {
    multi_rig rig;
    const create_mode mode =
        GENERATE(create_mode::container, create_mode::persistent_ttl, create_mode::persistent_sequential_ttl);
    multi_request m = one_of_each();
    m.ops.push_back(create_request{"/x", "", open_acl(), mode, std::chrono::milliseconds(1000)});
    CHECK(rig.c.b->submit(1, m) == zk_errc::unimplemented);
    rig.c.b->end_batch();
    rig.c.until_read();
    CHECK(rig.c.server.bytes_received() == 0);
    CHECK(rig.c.seen.replies.empty());
}

TEST_CASE("c_backend: a transaction in an expired session is refused") {
    multi_rig rig;
    rig.c.server.hang_up();
    drive(*rig.c.b, [&] { return !rig.c.connected(); });
    rig.c.server.greets_with.session = rig.c.server.greets_with.timeout_ms = 0;
    drive(*rig.c.b, [&] { return rig.c.b->has_socket(); });
    rig.c.b->process(false, true);
    rig.c.server.shake_hands();
    drive(*rig.c.b, [&] { return rig.c.seen.links.back() == link_state::expired; });
    CHECK(rig.c.b->submit(1, one_of_each()) == errc::session_expired);
}
