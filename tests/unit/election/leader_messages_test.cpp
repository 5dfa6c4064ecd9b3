#include "unit/support/rig.hpp"

#include <zkasio/election/leader_election.hpp>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("a campaign fails under its own name", "[messages]") {
    rig r;
    r.server.answer = [](const request&) { return refusal(zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const leader_election election(zk, "/e");
        const auto soon = boot_clock::now() + 1h;
        const std::string waits = co_await message_of(election.campaign());
        const std::string tries = co_await message_of(election.try_campaign());
        const std::string waits_for = co_await message_of(election.try_campaign_for(1h));
        const std::string waits_until = co_await message_of(election.try_campaign_until(soon));
        const std::string negative = co_await message_of(election.try_campaign_for(-1ns));
        CHECK(negative == "try_campaign_for /e: invalid argument (a time limit is not negative)");
        co_await zk.close();
        std::vector<std::string> closed;
        closed.push_back(co_await message_of(election.campaign()));
        closed.push_back(co_await message_of(election.try_campaign()));
        closed.push_back(co_await message_of(election.try_campaign_for(1h)));
        closed.push_back(co_await message_of(election.try_campaign_until(soon)));
        CHECK(closed == std::vector<std::string>{"campaign /e: client closed", "try_campaign /e: client closed",
                                                 "try_campaign_for /e: client closed",
                                                 "try_campaign_until /e: client closed"});
        // The request that was refused is told where it is about another node.
        for (const std::string* text : {&waits, &tries, &waits_for, &waits_until}) {
            CAPTURE(*text);
            CHECK(text->find("no permission") != std::string::npos);
            CHECK(text->find("acquire") == std::string::npos);
        }
    };
    r.run(body);
}
