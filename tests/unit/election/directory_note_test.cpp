#include "support/catch.hpp"

#include <zkasio/locks/directory_note.hpp>
#include <zkasio/operations.hpp>

#include <string>

using namespace zkasio;

namespace {

const std::string node = "_c_11111111-2222-4333-8444-555555555555-latch-0000000007", other = "x-latch-0000000008";

}  // namespace

TEST_CASE("directory note: what was written is read again", "[election]") {
    directory_note note;
    CHECK(directory_note::parse(note.text()) == note);
    note.revoked = {node, other};
    CHECK(directory_note::parse(note.text()) == note);
    note.leader = node;
    for (const std::string& data :
         {std::string(), std::string("10.0.0.1:80"), std::string("\n\nleader x\n"), std::string("a\0b\xff", 4)}) {
        note.proclaimed = data;
        CHECK(directory_note::parse(note.text()) == note);
        CHECK(note.proclaimed_by(node) == data);
    }
    CHECK(note.text().starts_with("zkasio 1\nleader " + node + "\nrevoke " + node + "\nrevoke " + other + "\n\n"));
}

TEST_CASE("directory note: concerns the contender that it names and no other", "[election]") {
    directory_note note;
    CHECK_FALSE(note.proclaimed_by(""));
    CHECK_FALSE(note.revokes(""));
    note.leader = node;
    note.proclaimed = "here";
    note.revoked = {other};
    CHECK(note.proclaimed_by(node) == "here");
    CHECK_FALSE(note.proclaimed_by(other));
    CHECK(note.revokes(other));
    CHECK_FALSE(note.revokes(node));
}

TEST_CASE("directory note: other data say nothing and a later version's lines are passed over", "[election]") {
    for (const std::string data : {"", "192.168.1.7", "zkasio", "zkasio 10\nleader a\n\nb", "\nzkasio 1\n"})
        CHECK(directory_note::parse(data) == directory_note());
    CHECK(directory_note::parse("zkasio 1") == directory_note());
    CHECK(directory_note::parse("zkasio 1\n") == directory_note());
    CHECK(directory_note::parse("zkasio 1\nleader a") == directory_note::parse("zkasio 1\nleader a\n\n"));
    const directory_note later = directory_note::parse("zkasio 1\nweather fine\nleader a\n\nb\n");
    CHECK(later.proclaimed_by("a") == "b\n");
}

TEST_CASE("directory note: the nodes that a LeaderLatch may watch are known by their names", "[election]") {
    CHECK(is_latch_node("/e/" + node));
    CHECK(is_latch_node("/e/x-latch--2147483648"));
    CHECK_FALSE(is_latch_node("/e/_c_1-lock-0000000001"));
    CHECK_FALSE(is_latch_node("/e/0123__lock__0000000001"));
    CHECK_FALSE(is_latch_node("/latch-0000000001/x"));
    CHECK_FALSE(is_latch_node("/latch-"));
    CHECK_FALSE(is_latch_node(""));
}

TEST_CASE("directory note: contenders have an id and a number in their names, also behind 2^31 nodes") {
    const std::string id = new_protection_id();
    CHECK(has_contender_id("/lock/_c_" + id + "-lock-0000000005"));
    CHECK(has_contender_id("/e/_c_" + id + "-latch--000000005"));
    CHECK(has_contender_id("/e/_c_" + id + "-latch--2147483648"));
    CHECK(has_contender_id("/lock/0123456789abcdef0123456789abcdef__lock__0000000005"));
    CHECK(has_contender_id("/lock/prefixed" + id + "own-0000000005"));
    // A user has named an unfair_mutex so.
    for (const char* const name : {"flag", "0000000005", "flag-00005", "job-0000000042", "host-latch-0000000001",
                                   "0123456789abcdef0123456789abcde-0000000001"}) {
        CAPTURE(name);
        CHECK_FALSE(has_contender_id(std::string("/lock/") + name));
    }
    CHECK_FALSE(has_contender_id("/lock/" + id));
}
