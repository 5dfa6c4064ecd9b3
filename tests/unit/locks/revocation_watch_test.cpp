#include "unit/locks/plain_claim.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/operations.hpp>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("revocation watch: contenders have an id and a number in their names, also behind 2^31 nodes") {
    using lock_detail::may_be_noted;
    const std::string id = new_protection_id();
    CHECK(may_be_noted("/lock/_c_" + id + "-lock-0000000005"));
    CHECK(may_be_noted("/e/_c_" + id + "-latch--000000005"));
    CHECK(may_be_noted("/e/_c_" + id + "-latch--2147483648"));
    CHECK(may_be_noted("/lock/0123456789abcdef0123456789abcdef__lock__0000000005"));
    CHECK(may_be_noted("/lock/prefixed" + id + "own-0000000005"));
    // A user has named an unfair_mutex so.
    for (const char* const name : {"flag", "0000000005", "flag-00005", "job-0000000042", "host-latch-0000000001",
                                   "0123456789abcdef0123456789abcde-0000000001"}) {
        CAPTURE(name);
        CHECK_FALSE(may_be_noted(std::string("/lock/") + name));
    }
    CHECK_FALSE(may_be_noted("/lock/" + id));
}

TEST_CASE("revocation watch: an answer that comes after it has gone changes nothing") {
    rig r;
    r.server.nodes_are_ours = true;
    r.server.answer = [](const request& q) -> std::optional<reply> {
        const auto* get = std::get_if<get_request>(&q);
        if (get && get->path == "/b") return std::nullopt;
        return reply();
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        const auto claim = std::make_shared<plain_claim>(on, std::vector<std::string>{"/a", "/b"});
        std::optional<lock_detail::revocation_watch> watch(claim);
        const asio::awaitable<void> who_has_not_looked_yet = watch->asked();  // keeps what the watch has
        co_await r.server.until([&] { return r.server.count("get /b") == 1; });
        watch.reset();
        co_await next_turns(r.server);
        r.server.reply_to_all();
        co_await next_turns(r.server);
        claim->give_up();
    };
    r.run(body);
}
