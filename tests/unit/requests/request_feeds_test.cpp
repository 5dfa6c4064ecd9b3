// When feeds may read: the sync() in front of their reads, and its answers.
#include "support/texts.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio::test::request_feeds_tests {

using namespace request_steps;

class listener final : public node_feed_listener {
public:
    texts told;

private:
    void connected(bool) override { told.push_back("connected"); }
    void disconnected() override { told.push_back("disconnected"); }
    void closed(std::error_code) override { told.push_back("closed"); }
    void answered(node_read, const std::string&, std::error_code, node_answer) override {}
    void changed(node_change, const std::string&, std::int64_t) override {}
    bool watches(node_read, const std::string&) const override { return false; }
    void for_each_watch(const std::function<void(node_read, const std::string&)>&) const override {}
};

// A feed of a client that comes back with another session: a sync() is in front of the feed's reads.
struct feed_bench {
    feed_bench() {
        const auto state = std::make_shared<feed_state>();
        state->root = "/a";
        state->listener = heard;
        b.requests.add_feed(state);
        b.session->session_id = 1;
        b.connect();
        b.requests.feeds_connected();
        disconnect();
        heard->told.clear();
        b.session->session_id = 2;
        b.connect();
        b.requests.feeds_connected();
    }
    void disconnect() {
        b.disconnect();
        b.requests.feeds_disconnected();
    }
    void answer_sync(reply r) {
        b.requests.flush();
        REQUIRE(std::holds_alternative<sync_request>(b.backend.submitted.back().second));
        b.requests.answered(b.backend.submitted.back().first, std::move(r));
        for (const auto& call : std::exchange(b.later_calls, {})) call();
    }
    parts_bench b{client_options("10.0.0.1").retry(retry_policy::exponential())};
    std::shared_ptr<listener> heard = std::make_shared<listener>();
};

TEST_CASE("requests: feeds do not read before a server has carried out their sync()", "[requests][feed]") {
    feed_bench f;
    const bool is_known = GENERATE(true, false);
    f.answer_sync(is_known ? refusal(zk_errc::throttled) : lost());
    CHECK(f.heard->told.empty());
    const auto now = boot_clock::now();
    CHECK(f.b.requests.due(now) > now);
    CHECK(f.b.requests.due(now) < boot_clock::time_point::max());
    SECTION("which is sent again") {
        f.b.connect();  // ends the pause
        f.answer_sync({});
        CHECK(f.heard->told == texts{"connected"});
    }
    SECTION("which belongs to its connection") {
        const std::size_t sent = f.b.backend.submitted.size();
        f.disconnect();
        f.b.connect();
        f.b.requests.flush();
        CHECK(f.b.backend.submitted.size() == sent);
        CHECK(f.b.requests.size() == 0);
    }
}

TEST_CASE("requests: a session that ends before the feeds' sync() was sent tells of no connection",
          "[requests][feed]") {
    feed_bench f;
    f.b.requests.end(f.b.requests.of_this_session(true), errc::session_expired);
    CHECK(f.heard->told.empty());
    CHECK(f.b.requests.size() == 0);
}

}  // namespace zkasio::test::request_feeds_tests
