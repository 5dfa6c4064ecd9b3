#include "unit/locks/plain_claim.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/detail/revocation_watch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

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
