// Requests that the C library does not know, between the library's on its connection: to a server that is scripted byte
// by byte, directly and through a tunnel.

#include "support/jute_writer.hpp"
#include "support/opcode.hpp"
#include "support/scripted_connection.hpp"
#include "unit/support/connection_steps.hpp"

#include <zkasio/detail/connection/own_frames.hpp>
#include <zkasio/error.hpp>
#include <zkasio/testing/detail/virtual_clock.hpp>

#include <poll.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

namespace c_backend_own_test {
namespace {

const std::error_code not_now = std::make_error_code(std::errc::resource_unavailable_try_again);
constexpr auto direct = connection::way::direct, tunnelled = connection::way::tunnelled;
using packet = scripted_server::packet;

multi_read_request some_reads() {
    multi_read_request r;
    r.reads = {get_request{"/a"}, children_request{"/b"}, get_request{"/c"}};
    return r;
}
std::string reads_answer() {
    jute_writer w;
    w.step(4, 0).text("data").stat(some_stat()).step(8, 0).texts({"x", "y"}).step(-1, -101).number(-101);
    return w.end_of_steps().bytes();
}
std::string who_answer() { return jute_writer().number(1).text("ip").text("127.0.0.1").bytes(); }
std::string get_answer(const std::string& data = "data") { return jute_writer().text(data).stat(some_stat()).bytes(); }

// What is asked, in order, by the ids from 1 on, and what the server says to it.
struct question {
    request asked;
    std::string answer;
};
std::vector<question> conversation() {
    return {{get_request{"/1"}, get_answer("1")}, {who_am_i_request{}, who_answer()},
            {get_request{"/3"}, get_answer("3")}, {get_request{"/4"}, get_answer("4")},
            {some_reads(), reads_answer()},       {count_below_request{"/"}, jute_writer().number(6).bytes()},
            {get_request{"/7"}, get_answer("7")}};
}

// What the server is asked by one of our requests, behind the library's read that may go first: see "a read of the
// library goes first". The test's turns read where nothing has come, which an event loop seldom does.
packet asked_own(connection& c, op_id id, const request& r) {
    packet asked = asked_by(c, id, r);
    if (asked.type != opcode::exists) return asked;
    c.server.answer(asked, jute_writer().stat(some_stat()).bytes());
    return c.server.read_packet();
}

// Asks all of it, and returns the frames of the answers.
std::vector<std::string> ask_all(connection& c) {
    std::vector<std::string> frames;
    op_id id = 0;
    c.b->begin_batch();
    for (const question& q : conversation()) REQUIRE_FALSE(c.b->submit(++id, q.asked));
    c.b->end_batch();
    for (const question& q : conversation())
        frames.push_back(scripted_server::reply_frame(c.server.read_packet().xid, 0, q.answer, 5));
    return frames;
}

void check_answer(connection& c, op_id id) {
    CAPTURE(id);
    REQUIRE(c.seen.replies[id].size() == 1);
    const reply& r = c.seen.replies[id].front();
    CHECK_FALSE(r.code);
    if (id == 2) CHECK(r.acl.size() == 1);
    if (id == 5) CHECK(r.results.size() == 3);
    if (id == 6) CHECK(r.stat.num_children == 6);
    if (id == 1 || id == 3 || id == 4 || id == 7) CHECK(r.data == std::to_string(id));
}

void check_lost(connection& c, op_id id) {
    CAPTURE(id);
    REQUIRE(c.seen.replies[id].size() == 1);
    CHECK(c.seen.replies[id].front().code == zk_errc::connection_loss);
    CHECK(c.seen.replies[id].front().sent);
}

bool is_lost(const connection& c) { return c.seen.links.back() == link_state::disconnected; }

// Whether the socket has something to read, as the event loop sees it. It may take a while to come.
bool is_readable(connection& c, int patience_ms = 0) {
    pollfd p{c.b->next_interest().descriptor, POLLIN, 0};
    return ::poll(&p, 1, patience_ms) == 1;
}

std::string event_frame(std::int32_t type, const std::string& path) {
    return scripted_server::reply_frame(-1, 0, jute_writer().number(type).number(3).text(path).bytes(), -1);
}

void add_watch(connection& c, op_id id, const std::string& path) {
    const packet asked = asked_own(c, id, add_watch_request{path, true});
    c.server.answer(asked, jute_writer().number(0).bytes());
    const reply r = only_reply(c, id);
    REQUIRE_FALSE(r.code);
}

using changes = std::vector<recorder::node_news>;

}  // namespace
}  // namespace c_backend_own_test

using namespace c_backend_own_test;

TEST_CASE("c_backend own frames: each request as ZooKeeper's protocol has it, and its answer") {
    connection c(GENERATE(direct, tunnelled));
    std::int32_t number = 0;
    op_id id = 0;
    const auto ask = [&](const request& r, const std::string& answer) {
        const packet asked = asked_own(c, ++id, r);
        CHECK(asked.xid == ++number);
        CHECK(jute_writer().text(jute_writer().number(asked.xid).number(asked.type).bytes() + asked.body).bytes() ==
              own_frame(asked.xid, r, ""));
        c.server.answer(asked, answer);
        return only_reply(c, id);
    };
    const reply read = ask(some_reads(), reads_answer());
    REQUIRE(read.results.size() == 3);
    CHECK(read.results[0].data == "data");
    CHECK(read.results[1].children == std::vector<std::string>{"x", "y"});
    CHECK(read.results[2].code == zk_errc::no_node);
    CHECK(ask(who_am_i_request{}, who_answer()).acl.size() == 1);
    CHECK(ask(ephemerals_request{"/"}, jute_writer().texts({"/a"}).bytes()).children.size() == 1);
    CHECK(ask(count_below_request{"/"}, jute_writer().number(3).bytes()).stat.num_children == 3);
    const packet get = asked_by(c, ++id, get_request{"/a"});
    CHECK_FALSE(is_own_number(get.xid));
    c.server.answer(get, get_answer());
    CHECK(only_reply(c, id).data == "data");
    CHECK(c.server.bytes_received() == 0);
}

TEST_CASE("c_backend own frames: the library's requests and ours leave and are answered in one order") {
    connection c(GENERATE(direct, tunnelled));
    std::vector<op_id> order;
    c.seen.reaction = [&](op_id id) { order.push_back(id); };
    const std::vector<std::string> frames = ask_all(c);
    std::string all;
    for (const std::string& f : frames) all += f;
    SECTION("at once, again and again") {
        for (int round = 0; round < 3; ++round) {
            c.server.send(all);
            c.until_answered(frames.size());
            c.seen.replies.clear();
            order.clear();
            all.clear();
            for (const std::string& f : ask_all(c)) all += f;
        }
        c.server.send(all);
    }
    SECTION("byte by byte") {
        for (const char one : all) {
            c.server.send({&one, 1});
            c.b->next_interest();
            turn_of(*c.b, true, false);
        }
    }
    SECTION("frame by frame, with events between them") {
        for (const std::string& f : frames) {
            c.server.tell(3, "/nobody/watches/this");
            c.server.send(f);
            c.until_read();
        }
    }
    c.until_answered(frames.size());
    CHECK(order == std::vector<op_id>{1, 2, 3, 4, 5, 6, 7});
    for (op_id id = 1; id <= frames.size(); ++id) check_answer(c, id);
    CHECK(c.seen.events.empty());
    CHECK(c.seen.added.empty());
}

TEST_CASE("c_backend own frames: a connection that ends at any byte of the answers") {
    const connection::way how = GENERATE(direct, tunnelled);
    std::size_t bytes = 0;
    for (std::size_t cut = 0, all = 1; cut <= all; ++cut) {
        CAPTURE(cut);
        connection c(how);
        const std::vector<std::string> frames = ask_all(c);
        std::string text;
        for (const std::string& f : frames) text += f;
        all = text.size();
        c.server.send(text.substr(0, cut));
        c.server.hang_up();
        drive(*c.b, [&] { return is_lost(c); });
        c.until_answered(frames.size());
        bytes = 0;
        for (op_id id = 1; id <= frames.size(); ++id) {
            bytes += frames[id - 1].size();
            if (bytes <= cut)
                check_answer(c, id);
            else
                check_lost(c, id);
        }
        if (cut % 50 == 0) c.check_next_connection();
    }
}

TEST_CASE("c_backend own frames: an incomplete head does not keep the event loop busy") {
    connection c;
    const packet asked = asked_own(c, 1, who_am_i_request{});
    const std::string frame = scripted_server::reply_frame(asked.xid, 0, who_answer());
    c.server.send(frame.substr(0, 5));
    CHECK(is_readable(c, 5000));
    c.until_read();
    CHECK_FALSE(is_readable(c));
    c.server.send(frame.substr(5, 20));
    CHECK(is_readable(c, 5000));
    c.until_read();
    CHECK_FALSE(is_readable(c));
    c.server.send(frame.substr(25));
    CHECK(only_reply(c, 1).acl.size() == 1);
}

TEST_CASE("c_backend own frames: a server out of step loses the connection, and nothing else") {
    const connection::way how = GENERATE(direct, tunnelled);
    connection c(how);
    const packet get = asked_by(c, 1, get_request{"/a"}), who = asked_own(c, 2, who_am_i_request{}),
                 last = asked_by(c, 3, get_request{"/a"});
    const auto frame = [](std::int32_t xid, const std::string& body) {
        return scripted_server::reply_frame(xid, 0, body);
    };
    std::string sent, why = "its answers are out of step with the requests";
    SECTION("ours before the library's") { sent = frame(who.xid, who_answer()); }
    SECTION("the library's before ours") { sent = frame(get.xid, get_answer()) + frame(last.xid, get_answer()); }
    SECTION("a number of ours that was not asked") { sent = frame(who.xid + 1, who_answer()); }
    SECTION("ours twice") {
        sent = frame(get.xid, get_answer()) + frame(who.xid, who_answer()) + frame(who.xid, who_answer());
    }
    if (how == direct) {  // a tunnel says it in its own words
        SECTION("an answer that is cut short") {
            sent = frame(get.xid, get_answer()) + frame(who.xid, jute_writer().number(1).text("ip").bytes());
            why = "an answer of its is cut short, or claims what is not there";
        }
    }
    SECTION("a frame of 2 GiB") {
        sent = jute_writer().number(INT32_MAX).number(get.xid).bytes();
        why = "it sends a frame of more than 128 MiB";
    }
    SECTION("a frame too short for an answer") {
        sent = jute_writer().number(8).number(who.xid).number(0).bytes();
        why = "it sends a frame that is too short for an answer";
    }
    c.server.send(sent);
    c.until_answered(3);
    CHECK(is_lost(c));
    for (op_id id = 1; id <= 3; ++id) CHECK(c.seen.replies[id].size() == 1);
    CHECK(c.seen.replies[3][0].sent);
    CAPTURE(c.b->last_failure());
    CHECK(c.b->last_failure().find(why) != std::string::npos);
    c.check_next_connection();
}

TEST_CASE("c_backend own frames: an answer that nobody waits for, while a watch stands") {
    connection c(GENERATE(direct, tunnelled));
    add_watch(c, 1, "/a");
    c.server.answer(1'700'000'000, 0);  // the library would end the process
    drive(*c.b, [&] { return is_lost(c); });
    c.check_next_connection();
}

TEST_CASE("c_backend own frames: a server that does not know a request is asked once") {
    connection c(GENERATE(direct, tunnelled));
    const packet asked = asked_own(c, 1, who_am_i_request{});
    c.server.answer(asked.xid, -6);
    c.server.hang_up();
    CHECK(only_reply(c, 1).code == zk_errc::unimplemented);
    drive(*c.b, [&] { return is_lost(c); });
    c.connect();
    CHECK(c.b->submit(2, who_am_i_request{}) == zk_errc::unimplemented);
    const packet other = asked_own(c, 3, count_below_request{"/"});
    CHECK(other.type == opcode::count_below);
}

TEST_CASE("c_backend own frames: asked while the library is in the middle of a frame") {
    connection c(GENERATE(direct, tunnelled));
    const packet get = asked_by(c, 1, get_request{"/a"});
    const std::string frame = scripted_server::reply_frame(get.xid, 0, get_answer());
    const std::size_t part = GENERATE(1U, 4U, 7U, 8U, 30U);
    CAPTURE(part);
    c.server.send(frame.substr(0, part));
    c.until_read();
    const packet who = asked_own(c, 2, who_am_i_request{});
    CHECK(who.type == opcode::who_am_i);
    c.server.send(frame.substr(part) + scripted_server::reply_frame(who.xid, 0, who_answer()));
    c.until_answered(2);
    CHECK(c.seen.replies[1][0].data == "data");
    CHECK(c.seen.replies[2][0].acl.size() == 1);
}

TEST_CASE("c_backend own frames: asked while nobody knows where the library is, a read of the library goes first") {
    connection c(GENERATE(direct, tunnelled));
    const std::string event = event_frame(3, "/a");
    const std::size_t part = GENERATE(0U, 3U, 9U, 30U);  // of an event that has come
    CAPTURE(part);
    c.server.send(event.substr(0, part));
    for (int i = 0; i < 3; ++i) turn_of(*c.b, true, false);
    submit(c, 1, who_am_i_request{});
    const packet mark = c.server.read_packet(), who = c.server.read_packet();
    CHECK(mark.type == opcode::exists);
    CHECK(who.type == opcode::who_am_i);
    if (part > 0) c.server.send(event.substr(part));
    c.server.answer(mark, jute_writer().stat(some_stat()).bytes());
    c.server.answer(who, who_answer());
    CHECK(only_reply(c, 1).acl.size() == 1);
    // From then on it is known.
    CHECK(asked_own(c, 2, who_am_i_request{}).type == opcode::who_am_i);
}

TEST_CASE("c_backend own frames: a long answer of the library, and one of ours") {
    connection c(GENERATE(direct, tunnelled));
    const std::string large(3'000'000, 'x');
    submit(c, 1, get_request{"/a"});
    submit(c, 2, some_reads());
    submit(c, 3, get_request{"/a"});
    const packet first = c.server.read_packet(), reads = c.server.read_packet(), last = c.server.read_packet();
    jute_writer w;
    for (int i = 0; i < 3; ++i) w.step(4, 0).text(large).stat(some_stat());
    const std::string all = scripted_server::reply_frame(first.xid, 0, get_answer(large)) +
                            scripted_server::reply_frame(reads.xid, 0, w.end_of_steps().bytes()) +
                            scripted_server::reply_frame(last.xid, 0, get_answer("last"));
    for (std::size_t at = 0; at < all.size(); at += 100'000) {
        c.server.send(std::string_view(all).substr(at, 100'000));
        c.until_read();
    }
    c.until_answered(3);
    CHECK(c.seen.replies[1][0].data == large);
    REQUIRE(c.seen.replies[2][0].results.size() == 3);
    CHECK(c.seen.replies[2][0].results[2].data == large);
    CHECK(c.seen.replies[3][0].data == "last");
}

// ------------------------------------------------------------------------------------------------------ half sent

namespace c_backend_own_test {
namespace {

// More than the buffers of two sockets hold: it is half sent.
multi_read_request large_reads() {
    multi_read_request r;
    r.reads.assign(16, get_request{'/' + std::string(1'000'000, 'x')});
    return r;
}

}  // namespace
}  // namespace c_backend_own_test

TEST_CASE("c_backend own frames: nothing is sent into the middle of our frame") {
    testing_detail::virtual_clock time;
    connection c(GENERATE(direct, tunnelled));
    submit(c, 1, large_reads());
    time.pass(4s);  // the library would send a ping
    CHECK(c.b->next_interest().write);
    CHECK(c.b->submit(2, get_request{"/a"}) == not_now);
    CHECK(c.b->submit(2, who_am_i_request{}) == not_now);
    CHECK(c.b->submit(2, add_auth_request{"digest", "a:b"}) == not_now);
    CHECK_FALSE(c.b->send_goodbye());
    const packet reads = c.server.read_packet();
    CHECK(reads.type == opcode::multi_read);
    const std::string frame = own_frame(1, large_reads(), "");
    const bool is_whole = frame.substr(12) == reads.body;
    CHECK(is_whole);
    packet get = asked_by(c, 2, get_request{"/a"});
    if (get.type == opcode::ping) get = c.server.read_packet();
    CHECK(get.type == opcode::get);
    jute_writer w;
    for (int i = 0; i < 16; ++i) w.step(-1, -101).number(-101);
    c.server.answer(reads, w.end_of_steps().bytes());
    c.server.answer(get, get_answer());
    c.until_answered(2);
    CHECK(c.seen.replies[1][0].results.size() == 16);
    CHECK(c.seen.replies[2][0].data == "data");
}

TEST_CASE("c_backend own frames: answers are read while our frame is half sent") {
    connection c(GENERATE(direct, tunnelled));
    const packet get = asked_by(c, 1, get_request{"/a"});
    submit(c, 2, large_reads());
    c.server.answer(get, get_answer());
    c.until_answered(1);
    CHECK(c.seen.replies[1][0].data == "data");
}

TEST_CASE("c_backend own frames: a connection that ends while our frame is half sent") {
    connection c(GENERATE(direct, tunnelled));
    submit(c, 1, large_reads());
    SECTION("by the server") { c.server.reset(); }
    SECTION("by us") { c.b->abort_connection(); }
    c.until_answered(1);
    check_lost(c, 1);
    c.check_next_connection();
    CHECK(asked_own(c, 2, who_am_i_request{}).type == opcode::who_am_i);
}

TEST_CASE("c_backend own frames: a server that takes no more of our frame is left after two thirds of the timeout") {
    testing_detail::virtual_clock time;
    connection c(GENERATE(direct, tunnelled), 1500);
    submit(c, 1, large_reads());
    time.pass(900ms);
    CHECK(c.b->next_interest().timeout <= 100ms);
    CHECK_FALSE(is_lost(c));
    time.pass(101ms);
    c.b->next_interest();
    CHECK(is_lost(c));
    check_lost(c, 1);
    CHECK(c.b->last_failure().find("no answer for two thirds of the session timeout") != std::string::npos);
}

TEST_CASE("c_backend own frames: what the library could not send yet goes first") {
    connection c(GENERATE(direct, tunnelled));
    submit(c, 1, set_request{"/a", std::string(16'000'000, 'x'), any_version});
    CHECK(c.b->submit(2, who_am_i_request{}) == not_now);
    c.b->end_batch();
    CHECK(c.b->next_interest().write);
    CHECK(c.server.read_packet().type == opcode::set);
    CHECK(asked_own(c, 2, who_am_i_request{}).type == opcode::who_am_i);
}

TEST_CASE("c_backend own frames: each request ends once when the backend is closed") {
    connection c(GENERATE(direct, tunnelled));
    const packet first = asked_own(c, 1, who_am_i_request{});
    submit(c, 2, get_request{"/a"});
    submit(c, 3, GENERATE(request(some_reads()), request(large_reads())));
    c.server.send(scripted_server::reply_frame(first.xid, 0, who_answer()).substr(0, 20));
    c.until_read();
    c.b->close();
    for (op_id id = 1; id <= 3; ++id) check_lost(c, id);
}

TEST_CASE("c_backend own frames: numbers begin again behind the last one") {
    std::int32_t number = largest_own_number - 1;
    number = own_number_after(number);
    CHECK(number == largest_own_number);
    CHECK(own_number_after(number) == 1);
}

// -------------------------------------------------------------------------------------------------- added watches

TEST_CASE("c_backend own frames: an added watch tells of each change, and the library's watches tell theirs") {
    connection c(GENERATE(direct, tunnelled));
    const packet get = asked_by(c, 1, get_request{"/a", true});
    c.server.answer(get, get_answer());
    only_reply(c, 1);
    add_watch(c, 2, "/a");
    std::int64_t zxid = 7;
    for (const std::int32_t type : {1, 3, 3, 2}) c.server.tell(type, "/a/b", zxid++);
    c.server.tell(3, "/a");
    c.server.tell(3, "/a");
    drive(*c.b, [&] { return c.seen.added.size() == 6; });
    using e = node_event;
    CHECK(c.seen.added == changes{{e::created, "/a/b", 7},
                                  {e::data_changed, "/a/b", 8},
                                  {e::data_changed, "/a/b", 9},
                                  {e::removed, "/a/b", 10},
                                  {e::data_changed, "/a", 0},
                                  {e::data_changed, "/a", 0}});
    CHECK(c.seen.events == changes{{e::data_changed, "/a"}});
}

TEST_CASE("c_backend own frames: a change is told before the answer that shows it") {
    connection c(GENERATE(direct, tunnelled));
    add_watch(c, 1, "/a");
    std::vector<std::size_t> told;
    c.seen.reaction = [&](op_id) { told.push_back(c.seen.added.size()); };
    const packet get = asked_by(c, 2, get_request{"/a"}), who = asked_own(c, 3, who_am_i_request{});
    c.server.send(event_frame(3, "/a") + scripted_server::reply_frame(get.xid, 0, get_answer()) + event_frame(3, "/a") +
                  scripted_server::reply_frame(who.xid, 0, who_answer()) + event_frame(2, "/a"));
    c.until_answered(2);
    drive(*c.b, [&] { return c.seen.added.size() == 3; });
    CHECK(told == std::vector<std::size_t>{1, 2});
}

TEST_CASE("c_backend own frames: an event in pieces, and one that is long") {
    const connection::way how = GENERATE(direct, tunnelled);
    connection c(how);
    add_watch(c, 1, "/a");
    const std::string path = "/a/" + std::string(GENERATE(3U, 600U, 60'000U), 'x'), frame = event_frame(3, path);
    for (const std::size_t part : {std::size_t{3}, std::size_t{9}, frame.size() - 1}) {
        c.seen.added.clear();
        c.server.send(std::string_view(frame).substr(0, part));
        for (int i = 0; i < 5; ++i) c.until_read();
        CHECK(c.seen.added.empty());
        if (how == direct) CHECK_FALSE(is_readable(c));
        c.server.send(std::string_view(frame).substr(part));
        drive(*c.b, [&] { return c.seen.added.size() == 1; });
        CHECK(c.seen.added[0].path == path);
    }
    const packet get = asked_by(c, 2, get_request{"/a"});
    c.server.answer(get, get_answer());
    CHECK(only_reply(c, 2).data == "data");
}

TEST_CASE("c_backend own frames: an event that is wrong ends the connection") {
    connection c(GENERATE(direct, tunnelled));
    add_watch(c, 1, "/a");
    std::string body = jute_writer().number(3).number(3).number(1'000'000).text("/a").bytes();
    SECTION("a path longer than the frame") {}
    SECTION("a path that is longer than a request can be") {
        body = jute_writer().number(3).number(3).text('/' + std::string(3'000'000, 'x')).bytes();
    }
    const std::string frame = scripted_server::reply_frame(-1, 0, body);
    for (std::size_t at = 0; at < frame.size() && !is_lost(c); at += 50'000) {
        c.server.send(std::string_view(frame).substr(at, 50'000));
        c.until_read();
    }
    drive(*c.b, [&] { return is_lost(c); });
    CHECK(c.seen.added.empty());
    c.check_next_connection();
}

TEST_CASE("c_backend own frames: an added watch ends with its connection, or with its removal") {
    connection c(GENERATE(direct, tunnelled));
    add_watch(c, 1, "/a");
    SECTION("with its connection") {
        c.server.hang_up();
        drive(*c.b, [&] { return is_lost(c); });
        c.check_next_connection();
    }
    SECTION("with its removal") {
        const packet asked = asked_own(c, 2, remove_added_watch_request{"/a"});
        CHECK(asked.type == opcode::remove_watches);
        c.server.answer(asked, "");
        CHECK_FALSE(only_reply(c, 2).code);
    }
    c.server.tell(3, "/a");
    const packet get = asked_by(c, 3, get_request{"/a"});
    c.server.answer(get, get_answer());
    CHECK(only_reply(c, 3).data == "data");
    CHECK(c.seen.added.empty());
}

TEST_CASE("c_backend own frames: below a chroot") {
    open_params p;
    p.chroot = "/app";
    connection c(std::move(p));
    c.connect();
    CHECK(asked_own(c, 1, count_below_request{"/a"}).body == jute_writer().text("/app/a").bytes());
    const packet asked = asked_own(c, 2, add_watch_request{"/", true});
    CHECK(asked.body == jute_writer().text("/app").number(1).bytes());
    c.server.send(scripted_server::reply_frame(1, 0, jute_writer().number(0).bytes()));
    c.server.answer(asked, jute_writer().number(0).bytes());
    c.until_answered(2);
    c.server.tell(3, "/app/b");
    drive(*c.b, [&] { return c.seen.added.size() == 1; });
    CHECK(c.seen.added[0].path == "/b");
}
