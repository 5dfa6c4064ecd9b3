// Requests through the C library, to a server that is scripted byte by byte: what goes over the wire, and what becomes
// of the answers.

#include "support/jute_writer.hpp"
#include "support/opcode.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

acl some_acl() {
    return {acl_entry(permission::all, anyone()),
            acl_entry(permission::read | permission::write, acl_id("ip", "10.0.0.0/8"))};
}

struct exchange {
    std::string name;
    request asked;
    std::int32_t type;
    jute_writer body, answer;
    reply expected = {};
};

create_request a_create(create_mode mode) {
    create_request r{"/a/n-", std::string("da\0ta", 5), some_acl(), mode};
    if (has_ttl(mode)) r.ttl = std::chrono::milliseconds(0x123456789);
    return r;
}

exchange creation(std::string name, create_mode mode, std::int32_t type, std::int32_t flags) {
    exchange e{std::move(name), a_create(mode), type, {}, {}};
    e.body.text("/a/n-").text(std::string_view("da\0ta", 5)).acl(some_acl()).number(flags);
    if (has_ttl(mode)) e.body.long_number(0x123456789);
    e.answer.text("/a/n-0000000001").stat(some_stat());
    e.expected.path = "/a/n-0000000001";
    e.expected.stat = some_stat();
    return e;
}

std::vector<exchange> each_exchange() {
    const auto path = [] { return jute_writer().text("/a"); };
    const auto reads = [&] { return path().boolean(false); };
    const auto stat = [] { return jute_writer().stat(some_stat()); };
    reply with_path, with_stat, with_data, with_names, with_acl;
    with_path.path = "/a";
    with_stat.stat = with_data.stat = with_names.stat = with_acl.stat = some_stat();
    with_data.data = std::string("\0x\0", 3);
    with_names.children = {"b", "", "\xc3\xa4"};
    with_acl.acl = some_acl();
    const auto data = [&] { return jute_writer().text(with_data.data).stat(some_stat()); };
    return {
        creation("create", create_mode::persistent, opcode::create, 0),
        creation("create ephemeral", create_mode::ephemeral, opcode::create, 1),
        creation("create sequential", create_mode::persistent_sequential, opcode::create, 2),
        creation("create ephemeral sequential", create_mode::ephemeral_sequential, opcode::create, 3),
        creation("create container", create_mode::container, opcode::create_container, 4),
        creation("create with a time to live", create_mode::persistent_ttl, opcode::create_ttl, 5),
        creation("create sequential with a time to live", create_mode::persistent_sequential_ttl, opcode::create_ttl, 6),
        {"remove", remove_request{"/a", 7}, opcode::remove, path().number(7), {}},
        {"set", set_request{"/a", "data", -1}, opcode::set, path().text("data").number(-1), stat(), with_stat},
        {"exists", exists_request{"/a"}, opcode::exists, reads(), stat(), with_stat},
        {"get", get_request{"/a"}, opcode::get, reads(), data(), with_data},
        {"children", children_request{"/a"}, opcode::children, reads(),
         jute_writer().texts(with_names.children).stat(some_stat()), with_names},
        {"sync", sync_request{"/a"}, opcode::sync, path(), path(), with_path},
        {"get_acl", get_acl_request{"/a"}, opcode::get_acl, path(), jute_writer().acl(some_acl()).stat(some_stat()),
         with_acl},
        {"set_acl", set_acl_request{"/a", some_acl(), 3}, opcode::set_acl, path().acl(some_acl()).number(3), stat()},
        {"get_config", get_config_request{}, opcode::get, jute_writer().text("/zookeeper/config").boolean(false), data(),
         with_data},
        {"reconfigure by steps", reconfig_request{"server.4=d", "3", "", 9}, opcode::reconfigure,
         jute_writer().text("server.4=d").text("3").null().long_number(9), data(), with_data},
        {"reconfigure as a whole", reconfig_request{"", "", "server.1=a"}, opcode::reconfigure,
         jute_writer().null().null().text("server.1=a").long_number(-1), data(), with_data},
    };
}

void check_equal(const reply& got, const reply& expected) {
    CHECK(got.code == expected.code);
    CHECK(got.sent == expected.sent);
    CHECK(got.path == expected.path);
    CHECK(got.data == expected.data);
    CHECK(got.children == expected.children);
    CHECK(got.acl == expected.acl);
    const bool same_stat = got.stat == expected.stat;
    CHECK(same_stat);
    REQUIRE(got.results.size() == expected.results.size());
    for (std::size_t i = 0; i < got.results.size(); ++i) {
        CAPTURE(i);
        CHECK(got.results[i].code == expected.results[i].code);
        CHECK(got.results[i].path == expected.results[i].path);
        const bool same_step_stat = got.results[i].stat == expected.results[i].stat;
        CHECK(same_step_stat);
    }
}

// The codes that a server may answer; those of the library alone among them.
constexpr std::int32_t codes[] = {-1,   -2,   -3,   -4,   -5,   -6,   -7,   -8,   -9,   -13,  -14,  -100,
                                  -101, -102, -103, -108, -110, -111, -112, -113, -114, -115, -116, -118,
                                  -119, -120, -121, -122, -123, -124, -125, -127, -999};

std::error_code code_of_failure(std::int32_t failure) {
    if (failure == -112) return errc::session_expired;
    if (failure == -116) return errc::client_closed;
    return static_cast<zk_errc>(failure);
}

// Such a request is not sent again, and the connection ends: see create_without_stat_test.cpp.
bool says_unknown(const request& asked, std::int32_t failure) {
    using opcode = known_requests::opcode;
    const std::int32_t number = known_requests::number_of(asked);
    return failure == -6 && number != opcode::none && number != opcode::create_ttl;
}

bool may_have_been_applied(std::int32_t failure) {
    static const std::set<std::int32_t> certain_ones{-6, -8, -13, -14};
    return (failure >= -15 && !certain_ones.contains(failure)) || failure == -112 || failure == -115 || failure == -116;
}

}  // namespace

TEST_CASE("c_backend: each request as ZooKeeper's protocol has it, and its answer") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    op_id id = 0;
    std::int32_t last = 0;
    for (const exchange& e : each_exchange()) {
        INFO(e.name);
        const auto asked = asked_by(c, ++id, e.asked);
        CHECK(asked.type == e.type);
        CHECK(asked.body == e.body.bytes());
        if (last != 0) CHECK(asked.xid == last + 1);
        last = asked.xid;
        c.server.answer(asked, e.answer.bytes());
        check_equal(only_reply(c, id), e.expected);
    }
    CHECK(c.server.bytes_received() == 0);
    CHECK(c.seen.lines.empty());
    CHECK(c.seen.links.size() == 1);
}

TEST_CASE("c_backend: each failure that a server may answer, by each request") {
    connection c;
    op_id id = 0;
    for (const exchange& e : each_exchange()) {
        for (const std::int32_t failure : codes) {
            INFO(e.name << ": " << failure);
            if (says_unknown(e.asked, failure)) continue;
            const auto asked = asked_by(c, ++id, e.asked);
            c.server.answer(asked.xid, failure);
            const reply r = only_reply(c, id);
            reply expected;
            expected.code = code_of_failure(failure);
            expected.sent = may_have_been_applied(failure);
            check_equal(r, expected);
        }
    }
    CHECK(c.seen.links.size() == 1);
}

TEST_CASE("c_backend: the body of a failure is ignored") {
    connection c;
    for (const exchange& e : each_exchange()) {
        INFO(e.name);
        const auto asked = asked_by(c, 1, e.asked);
        c.server.send(scripted_server::reply_frame(asked.xid, -101, e.answer.bytes()));
        reply expected;
        expected.code = zk_errc::no_node;
        check_equal(only_reply(c, 1), expected);
    }
}

TEST_CASE("c_backend: requests under way when the connection is lost may have been applied, each told once") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const bool by_reset = GENERATE(false, true);
    op_id id = 0;
    c.b->begin_batch();
    for (const exchange& e : each_exchange()) REQUIRE_FALSE(c.b->submit(++id, e.asked));
    c.b->end_batch();
    for (op_id i = 0; i < id; ++i) c.server.read_packet();
    by_reset ? c.server.reset() : c.server.hang_up();
    c.until_answered(id);
    reply expected;
    expected.code = zk_errc::connection_loss;
    expected.sent = true;
    for (const auto& [which, replies] : c.seen.replies) {
        INFO(which);
        REQUIRE(replies.size() == 1);
        check_equal(replies.front(), expected);
    }
    CHECK(c.seen.links == std::vector{link_state::connected, link_state::disconnected});
    c.check_next_connection();
    CHECK(c.seen.replies.size() == id);
}

TEST_CASE("c_backend: requests under way when the backend is closed may have been applied, each told once") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    op_id id = 0;
    for (const exchange& e : each_exchange()) submit(c, ++id, e.asked);
    c.b->close();
    REQUIRE(c.seen.replies.size() == id);
    for (const auto& [which, replies] : c.seen.replies) {
        INFO(which);
        REQUIRE(replies.size() == 1);
        CHECK(replies.front().code == zk_errc::connection_loss);
        CHECK(replies.front().sent);
    }
    c.b->close();
    CHECK(c.b->submit(id + 1, get_request{"/a"}) == errc::client_closed);
    CHECK(c.b->next_interest().descriptor == -1);
    CHECK(c.b->session_id() == 0);
    CHECK(c.b->session_timeout().count() == 0);
    CHECK(c.b->session_password().empty());
    CHECK_FALSE(c.b->has_socket());
    CHECK_FALSE(c.b->handshake_sent());
    CHECK(c.b->process(true, true) == drain_result::drained);
    c.b->forget_watch("/a", watch_kind::data);
    c.b->abort_connection();
    c.b->set_servers({c.server.where()});
    CHECK_FALSE(c.b->send_goodbye());
    CHECK(c.seen.replies.size() == id);
}

TEST_CASE("c_backend: a request that has to wait for a connection is refused, and not kept") {
    open_params p;
    connection c(p);
    for (const exchange& e : each_exchange()) {
        INFO(e.name);
        CHECK(c.b->submit(1, e.asked) == std::errc::resource_unavailable_try_again);
    }
    c.connect();
    c.until_read();
    CHECK(c.server.bytes_received() == 0);
    CHECK(c.seen.replies.empty());
}
