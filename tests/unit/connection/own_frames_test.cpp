// The requests that the C library does not know: their frames, and what becomes of each answer, whole or cut short.

#include "support/catch.hpp"
#include "unit/support/connection_steps.hpp"
#include "unit/support/requests.hpp"

#include <zkasio/detail/connection/own_frames.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace own_frames_test {
namespace {

constexpr std::int32_t ok = 0, no_node = -101;

multi_read_request two_reads(const std::string& first = "/a", const std::string& second = "/b") {
    multi_read_request r;
    r.reads = {get_request{first}, children_request{second}};
    return r;
}

jute_writer head(std::int32_t failure = ok) { return jute_writer().number(5).long_number(9).number(failure); }

// In memory that ends where the bytes end: a sanitizer sees a read beyond them.
const char* read(const request& asked, std::string_view frame, reply& answer, std::string_view chroot = {}) {
    const std::vector<char> exactly(frame.begin(), frame.end());
    return read_own_answer(own_question_of(asked), exactly, chroot, answer);
}
const char* read_told(std::string_view frame, std::optional<told_change>& change, std::string_view chroot = {}) {
    const std::vector<char> exactly(frame.begin(), frame.end());
    return read_event(exactly, chroot, change);
}

struct sample {
    request asked;
    std::string answer;
};
std::vector<sample> each_answer() {
    const auto both = [] {
        jute_writer w = head();
        w.step(4, 0).text(std::string_view("d\0", 2)).stat(some_stat()).step(8, 0).texts({"x", "", "yy"});
        return w.end_of_steps().bytes();
    };
    const auto failures = [] {
        return head().step(-1, no_node).number(no_node).step(-1, -102).number(-102).end_of_steps().bytes();
    };
    return {
        {two_reads(), both()},
        {two_reads(), failures()},
        {multi_read_request{}, head().end_of_steps().bytes()},
        {who_am_i_request{}, head().number(2).text("ip").text("127.0.0.1").text("digest").text("me").bytes()},
        {who_am_i_request{}, head().null().bytes()},
        {ephemerals_request{"/"}, head().texts({"/a", "/ab/c"}).bytes()},
        {count_below_request{"/"}, head().number(7).bytes()},
        {add_watch_request{"/a", true}, head().number(0).bytes()},
        {remove_added_watch_request{"/a"}, head().bytes()},
    };
}

}  // namespace
}  // namespace own_frames_test

using namespace own_frames_test;

TEST_CASE("own frames: each request as ZooKeeper's protocol has it") {
    jute_writer reads;
    reads.step(4).text("/a").boolean(false).step(8).text("/b").boolean(false).end_of_steps();
    const std::vector<std::tuple<request, std::int32_t, std::string>> all{
        {two_reads(), 22, reads.bytes()},
        {who_am_i_request{}, 107, ""},
        {ephemerals_request{"/a"}, 103, jute_writer().text("/a").bytes()},
        {count_below_request{"/a"}, 104, jute_writer().text("/a").bytes()},
        {add_watch_request{"/a", false}, 106, jute_writer().text("/a").number(0).bytes()},
        {add_watch_request{"/a", true}, 106, jute_writer().text("/a").number(1).bytes()},
        {remove_added_watch_request{"/a"}, 18, jute_writer().text("/a").number(3).bytes()},
    };
    for (const auto& [asked, opcode, body] : all) {
        INFO(operation_name(asked));
        const std::string head = jute_writer().number(77).number(opcode).bytes();
        CHECK(own_frame(77, asked, "") == jute_writer().text(head + body).bytes());
    }
}

TEST_CASE("own frames: exactly the requests that the library does not know are ours") {
    for (const auto& r : each_kind_of_request()) {
        INFO(r.name);
        CHECK(is_own(r.what) == (own_question_of(r.what).opcode != 0));
    }
}

TEST_CASE("own frames: paths have the chroot on their way, and not in the answers") {
    const auto with = [](std::string_view path, std::string_view chroot) {
        return own_frame(1, count_below_request{std::string(path)}, chroot).substr(16);
    };
    CHECK(with("/", "") == "/");
    CHECK(with("/", "/app") == "/app");
    CHECK(with("/a", "/app") == "/app/a");
    CHECK(own_frame(1, two_reads("/", "/b"), "/app") == own_frame(1, two_reads("/app", "/app/b"), ""));
    reply r;
    CHECK_FALSE(read(ephemerals_request{"/"}, head().texts({"/app", "/app/x", "/apple", "/b"}).bytes(), r, "/app"));
    CHECK(r.children == std::vector<std::string>{"/", "/x"});
    std::optional<told_change> change;
    CHECK_FALSE(read_told(head().number(1).number(3).text("/app/a").bytes(), change, "/app"));
    REQUIRE(change);
    CHECK(change->path == "/a");
    change.reset();
    CHECK_FALSE(read_told(head().number(1).number(3).text("/apple").bytes(), change, "/app"));
    CHECK_FALSE(change);
}

TEST_CASE("own frames: what the answers say") {
    std::vector<reply> r(each_answer().size());
    for (std::size_t i = 0; i < r.size(); ++i) {
        CAPTURE(i);
        CHECK_FALSE(read(each_answer()[i].asked, each_answer()[i].answer, r[i]));
        CHECK_FALSE(r[i].code);
        CHECK_FALSE(r[i].sent);
    }
    REQUIRE(r[0].results.size() == 2);
    CHECK(r[0].results[0].data == std::string("d\0", 2));
    REQUIRE(r[0].results[0].stat);
    CHECK((*r[0].results[0].stat == some_stat()));
    CHECK(r[0].results[1].children == std::vector<std::string>{"x", "", "yy"});
    REQUIRE(r[1].results.size() == 2);
    CHECK(r[1].results[0].code == zk_errc::no_node);
    CHECK(r[1].results[1].code == zk_errc::no_auth);
    CHECK(r[2].results.empty());
    CHECK((r[3].acl == acl{acl_entry(permission::none, acl_id("ip", "127.0.0.1")),
                           acl_entry(permission::none, acl_id("digest", "me"))}));
    CHECK(r[4].acl.empty());
    CHECK(r[5].children == std::vector<std::string>{"/a", "/ab/c"});
    CHECK(r[6].stat.num_children == 7);
}

TEST_CASE("own frames: a refusal has no body, and one that comes is of no interest") {
    for (const sample& s : each_answer())
        for (const std::string& body : {std::string(), std::string("\xff\xff\xff\xf0", 4)}) {
            reply r;
            CHECK_FALSE(read(s.asked, head(-6).bytes() + body, r));
            CHECK(r.code == zk_errc::unimplemented);
            CHECK(r.results.empty());
        }
}

TEST_CASE("own frames: no answer is taken that is cut short, at whatever byte") {
    for (const sample& s : each_answer()) {
        const bool has_body = !std::holds_alternative<add_watch_request>(s.asked);  // one that is looked at
        for (std::size_t n = 0; n < (has_body ? s.answer.size() : 16); ++n) {
            CAPTURE(operation_name(s.asked), n);
            reply r;
            CHECK(read(s.asked, std::string_view(s.answer).substr(0, n), r));
        }
    }
    const std::string event = head().number(3).number(3).text("/a/b").bytes();
    std::optional<told_change> change;
    for (std::size_t n = 0; n < event.size(); ++n) CHECK(read_told(event.substr(0, n), change));
    CHECK_FALSE(change);
    CHECK_FALSE(read_told(event, change));
    CHECK(change);
}

TEST_CASE("own frames: no count and no length is believed that is negative, or more than there is") {
    for (const std::int32_t wrong : {-2, -1000, INT32_MIN, 3, 1'000'000, INT32_MAX}) {
        CAPTURE(wrong);
        reply r;
        CHECK(read(who_am_i_request{}, head().number(wrong).text("ip").bytes(), r));
        CHECK(read(who_am_i_request{}, head().number(1).number(wrong).bytes(), r));
        CHECK(read(ephemerals_request{"/"}, head().number(wrong).text("/a").bytes(), r));
        CHECK(read(two_reads(), head().step(8, 0).number(wrong).text("a").bytes(), r));
        CHECK(read(two_reads(), head().step(4, 0).number(wrong).bytes(), r));
        std::optional<told_change> change;
        CHECK(read_told(head().number(1).number(3).number(wrong).bytes(), change));
        CHECK_FALSE(change);
    }
    reply r;
    CHECK(read(count_below_request{"/"}, head().number(-1).bytes(), r));
}

TEST_CASE("own frames: as many answers as reads, each of a read") {
    const auto of = [](int steps, std::int32_t type) {
        jute_writer w = head();
        for (int i = 0; i < steps; ++i) w.step(type, 0).number(0);
        return w.end_of_steps().bytes();
    };
    reply r;
    CHECK(read(two_reads(), of(1, -1), r));
    CHECK(read(two_reads(), of(3, -1), r = reply()));
    CHECK_FALSE(read(two_reads(), of(2, -1), r = reply()));
    for (const std::int32_t type : {1, 2, 3, 5, 14, -2, 0}) CHECK(read(two_reads(), of(2, type), r = reply()));
}

TEST_CASE("own frames: events, and those of no node") {
    const auto told = [](std::int32_t type) {
        std::optional<told_change> change;
        CHECK_FALSE(read_told(head().number(type).number(3).text("/a").bytes(), change));
        return change;
    };
    CHECK(told(1)->what == node_event::created);
    CHECK(told(2)->what == node_event::removed);
    CHECK(told(3)->what == node_event::data_changed);
    CHECK(told(4)->what == node_event::children_changed);
    for (const std::int32_t type : {-1, 0, 5, 7, INT32_MAX}) CHECK_FALSE(told(type));
}

TEST_CASE("own frames: their numbers") {
    CHECK(own_number_after(0) == 1);
    CHECK(own_number_after(largest_own_number) == 1);
    CHECK(own_number_after(largest_own_number - 1) == largest_own_number);
    for (const std::int32_t number : {0, -1, -2, -4, -8, -100, largest_own_number + 1, 1'700'000'000, INT32_MIN})
        CHECK_FALSE(is_own_number(number));
}
