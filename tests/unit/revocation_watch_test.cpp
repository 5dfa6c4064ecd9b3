#include "unit/rig.hpp"

#include <zkasio/locks/detail/revocation.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

/// Two nodes, both of which are watched.
class two_nodes final : public lock_claim {
public:
    explicit two_nodes(session on) : on_(std::move(on)), hold_(on_.hold(paths_)) {}

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return 1; }
    void give_up() noexcept override { hold_.end(); }
    asio::awaitable<void> gone() override { co_return; }

private:
    session on_;
    std::vector<std::string> paths_{"/a", "/b"};
    session_hold hold_;
};

}  // namespace

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
        const auto claim = std::make_shared<two_nodes>(on);
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
