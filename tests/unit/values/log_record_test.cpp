#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <unistd.h>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

std::string field(const log_record& r, std::string_view key) {
    for (const log_field& f : r.fields())
        if (f.key == key) return f.value;
    return "none";
}

}  // namespace

TEST_CASE("log_record: what happens to a session has a level, a text and fields") {
    std::vector<log_record> said;
    rig r(rig::quick().log([&](const log_record& record) { said.push_back(record); }));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.drop();
        co_await zk.get("/a");
    };
    r.run(body);
    REQUIRE(said.size() == 5);
    CHECK(said[0].level() == log_level::info);
    CHECK(field(said[0], "state") == "connecting");
    CHECK(said[1].level() == log_level::info);
    CHECK(field(said[1], "session") == "0x1001");
    CHECK(said[2].level() == log_level::warning);
    CHECK(field(said[2], "state") == "suspended");
    CHECK(field(said[2], "reason") == "connection lost: connection reset");
    CHECK(has(said[2].text(), "suspended: connection lost"));
    CHECK(field(said[3], "state") == "connected");
    CHECK(field(said[4], "state") == "closed");
    CHECK(said[4].level() == log_level::info);
}

TEST_CASE("log_record: what is less than what is wanted is not logged") {
    std::vector<log_level> levels;
    rig r(rig::quick().log([&](const log_record& record) { levels.push_back(record.level()); }, log_level::warning));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.drop();
        co_await zk.get("/a");
    };
    r.run(body);
    CHECK(levels == std::vector<log_level>{log_level::warning});
}

TEST_CASE("log_record: what fails in the background is a warning that names the node") {
    std::vector<log_record> said;
    rig r(rig::quick().log([&](const log_record& record) { said.push_back(record); }, log_level::warning));
    r.server.answer = [](const request&) { return refusal(zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        toolbox(zk).ensure_removed("/a");
        co_await zk.idle();
    };
    r.run(body);
    REQUIRE(said.size() == 1);
    CHECK(said.front().text() == "remove /a: no permission");
    CHECK(field(said.front(), "path") == "/a");
    CHECK(said.front().level() == log_level::warning);
}

TEST_CASE("log_record: what others have chosen cannot garble a log") {
    std::vector<log_field> fields;
    fields.push_back({"path", "/a\x1b[31m"});
    const log_record record(log_level::error, "remove /a\n: gone", fields);
    CHECK(record.text() == "remove /a\\x0a: gone");
    CHECK(field(record, "path") == "/a\\x1b[31m");
    CHECK(to_string(record.level()) == "error");
    const std::string_view text = record;
    CHECK(text == record.text());
}

TEST_CASE("log_record: without a sink, warnings are written to the standard error stream") {
    const client_options plain("10.0.0.1:2181");
    CHECK(plain.log_least() == log_level::warning);
    REQUIRE(plain.log());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const int saved = ::dup(2);
    ::dup2(ends[1], 2);
    plain.log()(log_record(log_level::warning, "cannot connect: \n"));
    ::dup2(saved, 2);
    for (const int each : {saved, ends[1]}) ::close(each);
    std::string written(100, '\0');
    written.resize(static_cast<std::size_t>(::read(ends[0], written.data(), written.size())));
    ::close(ends[0]);
    CHECK(written == "zkasio: warning: cannot connect: \\x0a\n");
    CHECK_FALSE(client_options("10.0.0.1:2181").log(nullptr).log());
}
