// Answers through the C library that are unusual: empty, null and large ones, many at a time, and those that end early.

#include "support/jute_writer.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <system_error>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("c_backend: data that are empty, null, and as large as a server may send") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const auto got = [&](const jute_writer& answer) {
        const auto asked = asked_by(c, 1, get_request{"/a"});
        c.server.answer(asked, answer.bytes());
        return only_reply(c, 1);
    };
    CHECK(got(jute_writer().text("").stat(some_stat())).data.empty());
    const reply null = got(jute_writer().null().stat(some_stat()));
    CHECK_FALSE(null.code);
    CHECK(null.data.empty());
    CHECK(null.stat == some_stat());
    std::string large(1'048'575, 'x');
    large.back() = '\0';
    const bool same = got(jute_writer().text(large).stat(some_stat())).data == large;
    CHECK(same);
    const auto asked = asked_by(c, 1, set_request{"/a", large});
    const bool same_asked = asked.body == jute_writer().text("/a").text(large).number(-1).bytes();
    CHECK(same_asked);
}

// The library allocates -1 elements, which is nothing, and which AddressSanitizer does not allow.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("c_backend: children and ACLs that are null are empty") {
    connection c;
    const auto answered = [&](const request& r) {
        const auto asked = asked_by(c, 1, r);
        c.server.answer(asked, jute_writer().null().stat(some_stat()).bytes());
        return only_reply(c, 1);
    };
    const reply children = answered(children_request{"/a"}), granted = answered(get_acl_request{"/a"});
    CHECK_FALSE(children.code);
    CHECK(children.children.empty());
    CHECK_FALSE(granted.code);
    CHECK(granted.acl.empty());
}
#endif

// Of an answer that is cut short, the library leaves out what is missing, and says nothing.
TEST_CASE("c_backend: children and ACLs with a string that is null, or missing, are a failure") {
    connection c;
    const auto code_of_answer = [&](const request& r, const jute_writer& answer) {
        const auto asked = asked_by(c, 1, r);
        c.server.answer(asked, answer.bytes());
        return only_reply(c, 1).code;
    };
    const std::error_code broken = zk_errc::marshalling_error;
    const request children = children_request{"/a"}, entries = get_acl_request{"/a"};
    CHECK(code_of_answer(children, jute_writer().number(2).text("b").null().stat(some_stat())) == broken);
    CHECK(code_of_answer(children, jute_writer().number(3).text("b")) == broken);
    CHECK(code_of_answer(entries, jute_writer().number(1).number(31).text("world").null().stat(some_stat())) == broken);
    CHECK(code_of_answer(entries, jute_writer().number(1).number(31).null().text("anyone").stat(some_stat())) == broken);
    CHECK(code_of_answer(entries, jute_writer().number(2).number(31).text("world")) == broken);
}

TEST_CASE("c_backend: children and ACLs that are empty, and many") {
    connection c;
    const auto names_in = [&](const jute_writer& answer) {
        const auto asked = asked_by(c, 1, children_request{"/a"});
        c.server.answer(asked, answer.bytes());
        return only_reply(c, 1);
    };
    CHECK(names_in(jute_writer().texts({}).stat(some_stat())).children.empty());
    std::vector<std::string> names;
    for (int i = 0; i < 10'000; ++i) names.push_back("member-" + std::to_string(i));
    names.push_back(std::string(10'000, 'n'));
    CHECK(names_in(jute_writer().texts(names).stat(some_stat())).children == names);

    const auto acl_in = [&](const jute_writer& answer) {
        const auto asked = asked_by(c, 1, get_acl_request{"/a"});
        c.server.answer(asked, answer.bytes());
        return only_reply(c, 1);
    };
    CHECK(acl_in(jute_writer().acl({}).stat(some_stat())).acl.empty());
    acl many;
    for (int i = 0; i < 1000; ++i) many.emplace_back(permission::read, acl_id("digest", "user-" + std::to_string(i)));
    CHECK(acl_in(jute_writer().acl(many).stat(some_stat())).acl == many);
}

TEST_CASE("c_backend: answers that come together are told one by one, in their order") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    constexpr op_id all = 700;  // more than one turn takes
    c.b->begin_batch();
    for (op_id id = 1; id <= all; ++id) REQUIRE_FALSE(c.b->submit(id, exists_request{"/a"}));
    c.b->end_batch();
    std::string answers;
    for (op_id id = 1; id <= all; ++id) {
        const auto asked = c.server.read_packet();
        answers += id % 2 ? scripted_server::reply_frame(asked.xid, 0, jute_writer().stat(some_stat()).bytes())
                          : scripted_server::reply_frame(asked.xid, -101);
    }
    std::vector<op_id> order;
    c.seen.reaction = [&](op_id id) { order.push_back(id); };
    c.server.send(answers);
    c.until_answered(all);
    REQUIRE(order.size() == all);
    for (op_id id = 1; id <= all; ++id) {
        REQUIRE(order[id - 1] == id);
        const std::error_code expected = id % 2 ? std::error_code() : make_error_code(zk_errc::no_node);
        REQUIRE(c.seen.replies[id].front().code == expected);
    }
}

TEST_CASE("c_backend: an answer that is cut off at any byte is none") {
    connection c(GENERATE(connection::way::direct, connection::way::tunnelled));
    const std::string body = jute_writer().text("data").stat(some_stat()).bytes();
    const std::size_t whole = scripted_server::reply_frame(1, 0, body).size();
    for (std::size_t n = 0; n <= whole; ++n) {
        INFO(n << " of " << whole);
        const auto asked = asked_by(c, 1, get_request{"/a"});
        c.server.send(scripted_server::reply_frame(asked.xid, 0, body).substr(0, n));
        c.server.hang_up();
        const reply r = only_reply(c, 1);
        CHECK(r.code == (n == whole ? std::error_code() : make_error_code(zk_errc::connection_loss)));
        CHECK(r.sent == (n < whole));
        CHECK(r.data == (n == whole ? "data" : ""));
        drive(*c.b, [&] { return !c.connected(); });
        c.connect();
    }
}
