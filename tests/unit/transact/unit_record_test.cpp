#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/transact/detail/unit_record.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <system_error>

namespace unit_record_tests {

using namespace zkasio;
using zkasio::transact_detail::seen_node;
using zkasio::transact_detail::unit_record;

namespace {

seen_node there(const std::string& data, std::int32_t version) {
    node_data n;
    n.data = data;
    n.stat.version = version;
    n.stat.czxid = 7;
    return n;
}

const seen_node missing = std::nullopt;

create_options sequential() { return create_options().mode(create_mode::persistent_sequential); }

// "check /a 3, set /b 1 x, create /c y, remove /d": without a version, any.
std::string text_of(const transaction& t) {
    std::string all;
    for (const transaction::step& s : t.steps()) {
        if (!all.empty()) all += ", ";
        const bool creates = s.what == transaction::kind::create;
        const bool writes = creates || s.what == transaction::kind::set;
        all += creates ? "create " : s.what == transaction::kind::set ? "set " : "";
        if (!writes) all += s.what == transaction::kind::check ? "check " : "remove ";
        all += s.path;
        if (!creates && s.version != any_version) all += ' ' + std::to_string(s.version);
        if (writes && !s.data.empty()) all += ' ' + s.data;
    }
    return all;
}

std::string text_of(const unit_record& r) { return text_of(r.steps()); }

std::string view_of(const unit_record& r, const std::string& path) {
    const seen_node* n = r.view(path);
    if (!n) return "unknown";
    return *n ? (**n).data : "none";
}

unit_record::refusal meaning(const unit_record& r, std::error_code code, const std::string& path) {
    return r.meaning_of(error(code, "transact", path));
}

}  // namespace

TEST_CASE("unit_record: what is read becomes a condition") {
    unit_record r;
    CHECK(view_of(r, "/a") == "unknown");
    CHECK(r.steps().empty());
    CHECK_FALSE(r.has_writes());
    CHECK(r.note_read("/b", there("x", 3))->data == "x");
    CHECK_FALSE(r.note_read("/a", missing));
    CHECK(view_of(r, "/b") == "x");
    CHECK(view_of(r, "/a") == "none");
    CHECK(text_of(r) == "create /a, remove /a, check /b 3");
    CHECK_FALSE(r.has_writes());
}

TEST_CASE("unit_record: a node is what was read first, or written") {
    unit_record r;
    r.note_read("/a", there("x", 3));
    CHECK(r.note_read("/a", there("y", 4))->data == "x");
    CHECK(r.note_read("/a", missing)->data == "x");
    r.set("/b", "mine");
    CHECK(r.note_read("/b", there("theirs", 9))->data == "mine");
    r.remove("/c");
    CHECK_FALSE(r.note_read("/c", there("theirs", 9)));
    CHECK(text_of(r) == "check /a 3, set /b mine, remove /c");
}

TEST_CASE("unit_record: the first write to a node that was read has its version") {
    unit_record r;
    r.note_read("/a", there("x", 0));
    r.note_read("/b", there("x", 5));
    r.note_read("/c", missing);
    r.remove("/b");
    r.set("/a", "y");
    r.create("/c", "z", {});
    CHECK(r.has_writes());
    CHECK(text_of(r) == "remove /b 5, set /a 0 y, create /c z");
    CHECK(view_of(r, "/a") == "y");
    CHECK((**r.view("/a")).stat.czxid == 7);
    CHECK(view_of(r, "/b") == "none");
    CHECK(view_of(r, "/c") == "z");
    CHECK((**r.view("/c")).stat == node_stat());
}

TEST_CASE("unit_record: the conditions that are part of a write stand behind the writes before it") {
    unit_record r;
    r.note_read("/counter", there("7", 3));
    r.note_read("/next", missing);
    r.note_read("/only-read", there("x", 1));
    r.note_read("/not-there", missing);
    CHECK(r.conditions_among_writes().empty());
    r.create("/order-7", "", {});
    r.set("/counter", "8");
    r.create("/next", "", {});
    CHECK(text_of(r) == "create /not-there, remove /not-there, check /only-read 1, create /order-7, set /counter 3 8, "
                        "create /next");
    const std::map<std::string, seen_node> among = r.conditions_among_writes();
    REQUIRE(among.size() == 2);
    CHECK(among.at("/counter")->stat.version == 3);
    CHECK_FALSE(among.at("/next"));
    r.set("/not-there", "x");  // a contradiction: no writes
    CHECK(r.conditions_among_writes().empty());
}

TEST_CASE("unit_record: a node is unchanged if it is the same one, of the same version") {
    CHECK(unit_record::is_unchanged(missing, missing));
    CHECK(unit_record::is_unchanged(there("x", 3), there("y", 3)));
    CHECK_FALSE(unit_record::is_unchanged(there("x", 3), there("x", 4)));
    CHECK_FALSE(unit_record::is_unchanged(there("x", 3), missing));
    CHECK_FALSE(unit_record::is_unchanged(missing, there("x", 0)));
    seen_node created_again = there("x", 3);
    created_again->stat.czxid = 8;
    CHECK_FALSE(unit_record::is_unchanged(there("x", 3), created_again));
}

TEST_CASE("unit_record: later writes to the same node have no version, and of sets the last one stays") {
    unit_record r;
    r.note_read("/a", there("x", 2));
    r.set("/a", "1");
    r.set("/b", "between");
    r.set("/a", "2");
    CHECK(text_of(r) == "set /a 2 2, set /b between");
    r.remove("/a");
    CHECK(text_of(r) == "set /a 2 2, set /b between, remove /a");
    r.create("/a", "3", {});
    r.set("/a", "4");
    CHECK(text_of(r) == "set /a 2 2, set /b between, remove /a, create /a 4");
    CHECK(view_of(r, "/a") == "4");
    CHECK_FALSE(r.contradiction());
}

TEST_CASE("unit_record: what was created and removed again was missing") {
    unit_record r;
    r.note_read("/a", missing);
    r.create("/a", "x", {});
    r.create("/a/b", "y", {});
    r.remove("/a/b");
    r.remove("/a");
    CHECK(text_of(r) == "create /a x, create /a/b y, remove /a/b, remove /a");
    CHECK(view_of(r, "/a") == "none");
    CHECK(meaning(r, zk_errc::node_exists, "/a") == unit_record::refusal::conflict);
    CHECK(meaning(r, zk_errc::node_exists, "/a/b") == unit_record::refusal::of_a_write);
}

TEST_CASE("unit_record: sequential nodes have no name, and may be many") {
    unit_record r;
    r.create("/q/i-", "1", sequential());
    r.create("/q/i-", "2", sequential());
    CHECK(view_of(r, "/q/i-") == "unknown");
    CHECK(text_of(r) == "create /q/i- 1, create /q/i- 2");
    CHECK(r.has_writes());
    CHECK_FALSE(r.contradiction());
    r.note_read("/gone", missing);
    r.create("/gone/i-", "1", sequential());
    REQUIRE(r.contradiction());
    CHECK(r.contradiction()->path() == "/gone/i-");
    r.set("/gone", "1");  // the first one is told
    CHECK(r.contradiction()->path() == "/gone/i-");
}

TEST_CASE("unit_record: a write that contradicts what was seen leaves the conditions only") {
    const auto contradiction = [](unit_record& r) {
        REQUIRE(r.contradiction());
        CHECK_FALSE(r.has_writes());
        return std::string(r.contradiction()->what());
    };
    SECTION("set") {
        unit_record r;
        r.note_read("/a", missing);
        r.note_read("/b", there("x", 1));
        r.set("/b", "y");
        r.set("/a", "y");
        CHECK(contradiction(r) == "set /a: no such node (the body sees no node there)");
        CHECK(text_of(r) == "create /a, remove /a, check /b 1");
    }
    SECTION("remove") {
        unit_record r;
        r.remove("/a");
        r.remove("/a");
        CHECK(contradiction(r) == "remove /a: no such node (the body sees no node there)");
        CHECK(text_of(r).empty());
    }
    SECTION("create") {
        unit_record r;
        r.note_read("/a", there("x", 1));
        r.create("/a", "y", {});
        r.set("/a", "the first contradiction counts");
        CHECK(contradiction(r) == "create /a: node exists (the body sees a node there)");
        CHECK(text_of(r) == "check /a 1");
        CHECK(meaning(r, zk_errc::bad_version, "/a") == unit_record::refusal::conflict);
    }
    SECTION("create twice") {
        unit_record r;
        r.create("/a", "x", {});
        r.create("/a", "y", {});
        CHECK(contradiction(r) == "create /a: node exists (the body sees a node there)");
    }
    SECTION("a node without its parent") {
        unit_record r;
        r.note_read("/a", there("x", 1));
        r.remove("/a");
        r.create("/a/b", "y", {});
        CHECK(contradiction(r) == "create /a/b: no such node (the body sees no parent of it)");
        CHECK(text_of(r) == "check /a 1");
    }
    SECTION("a node that the body creates after all is asked for without it") {
        unit_record r;
        r.note_read("/a/b", missing);
        r.create("/a/b", "y", {});
        r.create("/a/b", "z", {});
        CHECK(contradiction(r) == "create /a/b: node exists (the body sees a node there)");
        CHECK(text_of(r) == "create /a/b, remove /a/b");
        CHECK(meaning(r, zk_errc::no_node, "/a/b") == unit_record::refusal::no_parent);
    }
}

TEST_CASE("unit_record: a missing parent says that all below it is missing") {
    unit_record r;
    r.note_read("/a/b/c", missing);
    CHECK(text_of(r) == "create /a/b/c, remove /a/b/c");
    CHECK(meaning(r, zk_errc::no_node, "/a/b/c") == unit_record::refusal::no_parent);
    r.note_read("/a/b", missing);
    CHECK(text_of(r) == "create /a/b, remove /a/b");
    CHECK(meaning(r, zk_errc::no_node, "/a/b/c") == unit_record::refusal::of_a_write);
    r.note_read("/a", missing);
    CHECK(text_of(r) == "create /a, remove /a");
    r.create("/a", "x", {});
    CHECK(text_of(r) == "create /a x");
    // Without its chroot, nothing can be created.
    CHECK(meaning(r, zk_errc::no_node, "/a") == unit_record::refusal::of_a_write);
    unit_record top;
    top.note_read("/a", missing);
    CHECK(meaning(top, zk_errc::no_node, "/a") == unit_record::refusal::of_a_write);
    top.note_read("/a/b/c", missing);
    CHECK(text_of(top) == "create /a, remove /a");
}

TEST_CASE("unit_record: a parent that was written before it is known to be missing") {
    unit_record r;
    r.create("/p", "1", {});
    r.note_read("/p/x", missing);
    CHECK(text_of(r) == "create /p/x, remove /p/x, create /p 1");
    CHECK_FALSE(r.has_read("/p"));
    r.note_missing("/p");
    CHECK(r.has_read("/p"));
    CHECK(text_of(r) == "create /p 1");
    CHECK(view_of(r, "/p") == "1");
    CHECK(meaning(r, zk_errc::node_exists, "/p") == unit_record::refusal::conflict);

    for (const bool sets : {true, false}) {
        unit_record blind;
        if (sets)
            blind.set("/p", "1");
        else
            blind.remove("/p");
        blind.note_read("/p/x", missing);
        blind.note_missing("/p");
        REQUIRE(blind.contradiction());
        CHECK(blind.contradiction()->code() == zk_errc::no_node);
        CHECK(blind.contradiction()->operation() == (sets ? "set" : "remove"));
        CHECK(text_of(blind) == "create /p, remove /p");
    }
    unit_record read;
    read.note_read("/p", there("a", 3));
    read.note_missing("/p");  // the first answer counts
    CHECK(text_of(read) == "check /p 3");
}

TEST_CASE("unit_record: what a refusal means") {
    using enum unit_record::refusal;
    unit_record r;
    r.note_read("/there", there("x", 1));
    r.note_read("/below/missing", missing);
    r.note_read("/below/created", missing);
    r.create("/below/created", "x", {});
    r.set("/blind", "x");
    r.create("/new", "x", {});
    CHECK(meaning(r, zk_errc::bad_version, "/there") == conflict);
    CHECK(meaning(r, zk_errc::no_node, "/there") == conflict);
    CHECK(meaning(r, zk_errc::no_auth, "/there") == of_a_write);
    CHECK(meaning(r, zk_errc::not_empty, "/there") == of_a_write);
    CHECK(meaning(r, zk_errc::node_exists, "/below/missing") == conflict);
    CHECK(meaning(r, zk_errc::no_node, "/below/missing") == no_parent);
    CHECK(meaning(r, zk_errc::no_auth, "/below/missing") == of_a_write);
    CHECK(meaning(r, zk_errc::node_exists, "/below/created") == conflict);
    CHECK(meaning(r, zk_errc::no_node, "/below/created") == of_a_write);
    CHECK(meaning(r, zk_errc::no_node, "/blind") == of_a_write);
    CHECK(meaning(r, zk_errc::node_exists, "/new") == of_a_write);
    CHECK(meaning(r, zk_errc::bad_version, "/never/seen") == of_a_write);
}

TEST_CASE("unit_record: a negative version is no condition") {
    for (const std::int32_t version : {any_version, std::numeric_limits<std::int32_t>::min()}) {
        unit_record r;
        std::error_code code;
        try {
            r.note_read("/a", there("x", version));
        } catch (const error& e) {
            code = e.code();
            CHECK(e.path() == "/a");
        }
        CHECK(code == std::errc::result_out_of_range);
        CHECK(view_of(r, "/a") == "unknown");
    }
}

}  // namespace unit_record_tests
