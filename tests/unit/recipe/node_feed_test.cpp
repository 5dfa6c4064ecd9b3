#include "support/texts.hpp"
#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/recipe/node_feed.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Notes what it is told, and watches what it reads and what it has been answered.
class note_taker final : public node_feed_listener {
public:
    texts told;
    std::set<std::pair<node_read, std::string>> reading, watched;
    bool throws = false;
    std::string reads_when_connected;  // by `feed`, its data; empty: nothing
    std::optional<node_feed> feed;

    bool has(const std::string& text) const { return std::find(told.begin(), told.end(), text) != told.end(); }
    std::size_t times(const std::string& text) const {
        return static_cast<std::size_t>(std::count(told.begin(), told.end(), text));
    }
    void read(node_read what, const std::string& path) {
        reading.insert({kind_of(what), path});
        feed->read(what, path);
    }

private:
    void connected(bool) override {
        told.push_back("connected");
        if (!reads_when_connected.empty()) feed->read(node_read::data, reads_when_connected);
        if (throws) throw std::runtime_error("a listener's");
    }
    void disconnected() override {
        told.push_back("disconnected");
        reading.clear();
        watched.clear();
    }
    void closed(std::error_code why) override {
        told.push_back("closed: " + why.message());
        watched.clear();
    }
    void answered(node_read what, const std::string& path, std::error_code code, node_answer) override {
        told.push_back(path + ": " + code.message());
        reading.erase({kind_of(what), path});
        if (!code) watched.insert({kind_of(what), path});
    }
    void changed(node_change what, const std::string& path, std::int64_t) override {
        told.push_back(path + " changed");
        watched.erase({what == node_change::children_changed ? node_read::children : node_read::stat, path});
    }
    void authenticated() override { told.push_back("authenticated"); }
    bool watches(node_read what, const std::string& path) const override {
        return reading.contains({kind_of(what), path}) || watched.contains({kind_of(what), path});
    }
    void for_each_watch(const std::function<void(node_read, const std::string&)>& f) const override {
        for (const auto& [what, path] : watched) f(what, path);
    }
    static node_read kind_of(node_read what) { return what == node_read::data ? node_read::stat : what; }
};

struct feed_rig : rig {
    std::shared_ptr<note_taker> notes = std::make_shared<note_taker>();
    std::optional<node_feed>& feed = notes->feed;

    // Everything about a feed happens on the strand.
    asio::awaitable<void> begin(client zk, std::string root = "/a") {
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        feed.emplace(toolbox(zk).feed(std::move(root), notes));
        co_await asio::post(loop.executor(), asio::use_awaitable);
        co_await server.until([&] { return notes->has("connected"); });
    }
    void read(client zk, node_read what, const std::string& path) {
        asio::dispatch(zk.get_executor(), [this, what, path] { notes->read(what, path); });
    }
    void leave(client zk, node_read what, const std::string& path) {
        asio::dispatch(zk.get_executor(), [this, what, path] {
            notes->watched.erase({what, path});
            feed->leave(what, path);
        });
    }
    asio::awaitable<void> until_told(std::string text, std::size_t times = 1) {
        co_await server.until([&] { return notes->times(text) >= times; });
    }
};

}  // namespace

TEST_CASE("node_feed: tells of the connection and of answers and of changes", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, node_read::data, "/a");
        r.read(zk, node_read::children, "/a/b");
        co_await r.until_told("/a/b: Success");
        CHECK(r.server.watched("/a"));
        CHECK(r.server.watched("/a/b", watch_kind::children));
        CHECK(r.core->watches() == 0);  // nothing is kept for them
        r.server.fire(node_event::data_changed, "/a");
        r.server.fire(node_event::children_changed, "/a/b");
        co_await r.until_told("/a/b changed");
        CHECK(r.notes->has("/a changed"));
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: what is not below the root is nobody's", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        const auto beside = co_await zk.get_and_watch("/ab");
        const auto within = co_await zk.get_and_watch("/a/b");
        r.server.fire(node_event::data_changed, "/ab");
        r.server.fire(node_event::data_changed, "/a/b");
        co_await r.until_told("/a/b changed");
        CHECK_FALSE(r.notes->has("/ab changed"));
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: its watches go with the connection and are not set again", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        const auto own = co_await zk.get_and_watch("/a/own");
        r.read(zk, node_read::data, "/a");
        r.read(zk, node_read::data, "/a/own");
        co_await r.until_told("/a/own: Success");
        r.server.drop();
        co_await r.until_told("disconnected");
        CHECK_FALSE(r.server.watched("/a"));
        CHECK_FALSE(r.server.watched("/a/own"));  // somebody else's, too, who has it again on the next connection
        co_await r.until_told("connected", 2);
        co_await r.server.until([&] { return r.server.watched("/a/own"); });
        CHECK_FALSE(r.server.watched("/a"));
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a read of an earlier connection is not answered and not sent again", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.server.answer = [](const request&) -> std::optional<reply> { return std::nullopt; };
        r.read(zk, node_read::data, "/a");
        co_await r.server.until([&] { return r.server.count("get /a") == 1; });
        r.server.drop();
        r.read(zk, node_read::data, "/a/late");  // perhaps before it is told
        co_await r.until_told("connected", 2);
        r.server.answer = [](const request&) { return reply{}; };
        r.read(zk, node_read::data, "/a/next");
        co_await r.until_told("/a/next: Success");
        CHECK(r.server.count("get /a") == 1);
        CHECK(r.notes->told.back() == "/a/next: Success");
        for (const std::string& text : r.notes->told) CHECK_FALSE(text.starts_with("/a: "));
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: whoever leaves a watch last has it removed", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, node_read::data, "/a");
        co_await r.until_told("/a: Success");
        {
            const auto own = co_await zk.get_and_watch("/a");
            r.leave(zk, node_read::stat, "/a");
            co_await next_turns(r.server);
            CHECK(r.server.watched("/a"));
            r.read(zk, node_read::data, "/a");
            co_await r.until_told("/a: Success", 2);
        }
        co_await next_turns(r.server);
        CHECK(r.server.watched("/a"));
        CHECK(r.core->watches() == 0);
        r.leave(zk, node_read::stat, "/a");
        co_await r.server.until([&] { return !r.server.watched("/a"); });
        co_await r.server.until([&] { return r.core->watches() == 0; });
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a watch that was kept for a read is removed if the read is refused", "[feed]") {
    const node_read what = GENERATE(node_read::data, node_read::stat, node_read::children);
    const watch_kind kind = what == node_read::children ? watch_kind::children : watch_kind::data;
    const bool of_feed = GENERATE(true, false);  // who has the watch first
    const auto code = GENERATE(as<std::error_code>(), std::error_code(), zk_errc::no_auth, zk_errc::throttled);
    feed_rig r;
    const auto other = std::make_shared<note_taker>();
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        std::optional<watch> own;
        if (of_feed) {
            asio::dispatch(zk.get_executor(), [&] {
                other->feed.emplace(toolbox(zk).feed("/a", other));
                other->read(what, "/a");
            });
            co_await r.server.until([&] { return other->has("/a: Success"); });
        } else if (kind == watch_kind::children) {
            auto seen = co_await zk.children_and_watch("/a");
            own = std::move(seen.changes);
        } else {
            auto seen = co_await zk.get_and_watch("/a");
            own = std::move(seen.changes);
        }
        r.server.answer = [](const request& asked) {
            return std::holds_alternative<remove_watch_request>(asked) ? std::optional(reply()) : std::nullopt;
        };
        const std::size_t before = r.server.requests.size();
        r.read(zk, what, "/a");
        co_await r.server.until([&] { return r.server.requests.size() > before; });
        own.reset();
        if (of_feed) {
            asio::dispatch(zk.get_executor(), [&] {
                other->watched.clear();
                other->feed->leave(what, "/a");
            });
        }
        co_await next_turns(r.server);
        CHECK(r.server.watched("/a", kind));
        r.server.reply_to_all(code);
        co_await r.until_told("/a: " + code.message());
        co_await next_turns(r.server);
        CHECK(r.server.watched("/a", kind) == !code);
        if (!code) r.leave(zk, kind == watch_kind::children ? what : node_read::stat, "/a");
        co_await next_turns(r.server);
        CHECK_FALSE(r.server.watched("/a", kind));
        CHECK(r.server.count("remove watch /a") == 1);
        other->feed.reset();
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a refused read for which no watch was kept is followed by no removal", "[feed]") {
    const node_read what = GENERATE(node_read::data, node_read::stat, node_read::children);
    feed_rig r;
    r.server.answer = [](const request&) { return refusal(zk_errc::no_auth); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, what, "/a");
        co_await r.until_told("/a: " + make_error_code(zk_errc::no_auth).message());
        co_await next_turns(r.server);
        CHECK(r.server.count("remove watch /a") == 0);
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: no budget for its watches", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        const std::string long_name(100'000, 'x');
        for (int i = 0; i < 12; ++i) r.read(zk, node_read::data, "/a/" + std::to_string(i) + long_name);
        co_await r.until_told("/a/11" + long_name + ": Success");
        for (int i = 0; i < 12; ++i) CHECK(r.notes->has("/a/" + std::to_string(i) + long_name + ": Success"));
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: the session ends and the client is closed", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.server.expire();
        co_await r.until_told("connected", 2);
        CHECK(r.notes->has("disconnected"));
        co_await zk.close();
        CHECK(r.notes->told.back() == "closed: client closed");
        const auto late = std::make_shared<note_taker>();
        co_await asio::dispatch(zk.get_executor(), asio::use_awaitable);
        const node_feed refused = toolbox(zk).feed("/a", late);
        CHECK(late->told.empty());  // not before feed() has returned
        for (int i = 0; i < 3; ++i) co_await asio::post(zk.get_executor(), asio::use_awaitable);
        REQUIRE(late->told.size() == 1);
        CHECK(late->told.front() == "closed: client closed");
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: closed() is the last that is told, also while a read is under way", "[feed]") {
    const std::error_code answer = GENERATE(std::error_code(), std::error_code(zk_errc::no_node));
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.server.answer = [](const request&) -> std::optional<reply> { return std::nullopt; };
        r.read(zk, node_read::data, "/a");
        co_await r.server.until([&] { return r.server.count("get /a") == 1; });
        std::vector<close_result> how;
        const running closing(r.loop.executor(), close(zk, how));
        co_await r.until_told("closed: client closed");
        r.server.reply_to_all(answer);
        co_await closing.end();
        CHECK(how == std::vector<close_result>{close_result::confirmed});
        CHECK(r.notes->told.back() == "closed: client closed");
        r.read(zk, node_read::data, "/a/late");
        co_await asio::post(zk.get_executor(), asio::use_awaitable);
        CHECK(r.notes->told.back() == "closed: client closed");
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: behind a sync in a new session and in a new session only", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, node_read::data, "/a");
        co_await r.until_told("/a: Success");
        r.server.drop();
        co_await r.until_told("connected", 2);
        r.read(zk, node_read::data, "/a");
        co_await r.until_told("/a: Success", 2);
        CHECK(r.server.count("sync /") == 0);
        r.notes->reads_when_connected = "/a/first";
        r.server.expire();
        co_await r.until_told("/a/first: Success");
        const std::size_t all = r.server.texts().size();
        REQUIRE(all >= 2);
        CHECK(r.server.texts()[all - 2] == "sync /");
        CHECK(r.server.texts()[all - 1] == "get /a/first");
        r.server.drop();
        co_await r.until_told("/a/first: Success", 2);
        CHECK(r.server.count("sync /") == 1);
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a sync that has failed is asked for again before anything is read", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.notes->reads_when_connected = "/a";
        r.server.answer = [](const request& q) -> std::optional<reply> {
            if (std::holds_alternative<sync_request>(q)) return std::nullopt;
            return reply{};
        };
        r.server.expire();
        co_await r.server.until([&] { return r.server.count("sync /") == 1; });
        r.server.answer = [](const request&) { return reply{}; };
        r.server.drop();
        co_await r.server.until([&] { return r.server.count("sync /") == 2; });
        co_await r.until_told("/a: Success");
        CHECK(r.server.texts().back() == "get /a");
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a sync that a server puts off is asked for again before anything is read", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        const auto other = co_await zk.get_and_watch("/a");
        r.notes->reads_when_connected = "/a";
        r.notes->told.clear();
        r.server.answer = [&](const request& q) -> std::optional<reply> {
            if (!std::holds_alternative<sync_request>(q) || r.server.count("sync /") > 1) return reply{};
            return refusal(zk_errc::throttled);
        };
        r.server.expire();
        co_await r.until_told("/a: Success");
        CHECK(r.server.count("sync /") == 2);
        CHECK(r.server.texts().back() == "get /a");
        CHECK(r.notes->told == texts{"disconnected", "connected", "/a: Success"});
        r.feed.reset();
    };
    r.run(body);
}

// The servers that a client comes back to know what its answers have told, and perhaps not what an event has.
TEST_CASE("node_feed: behind a sync when the last thing that was told is an event", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, node_read::data, "/a");
        co_await r.until_told("/a: Success");
        r.server.fire(node_event::removed, "/a");
        r.server.drop();
        co_await r.until_told("connected", 2);
        CHECK(r.server.count("sync /") == 1);
        r.server.drop();
        co_await r.until_told("connected", 3);
        CHECK(r.server.count("sync /") == 1);
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: the watch on the configuration is one with that on its node", "[feed]") {
    const std::string path = "/zookeeper/config";
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk, "/");
        r.read(zk, node_read::data, path);
        co_await r.until_told(path + ": Success");
        {
            const auto config = co_await zk.config_and_watch();
        }
        co_await next_turns(r.server);
        CHECK(r.server.watched(path));
        const auto config = co_await zk.config_and_watch();
        r.leave(zk, node_read::stat, path);
        co_await next_turns(r.server);
        CHECK(r.server.watched(path));
        CHECK(r.core->watches() == 1);
        r.server.fire(node_event::data_changed, path);
        const watch_event changed = co_await config.changes.changed();
        CHECK(changed.what == node_change::data_changed);
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: a removal that was not sent goes with the connection", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        r.read(zk, node_read::data, "/a");
        co_await r.until_told("/a: Success");
        auto own = std::optional(co_await zk.get_and_watch("/a/own"));
        // A thousand requests are under way, so that the removals have to wait.
        r.server.answer = [](const request&) -> std::optional<reply> { return std::nullopt; };
        for (int i = 0; i < 1000; ++i) r.read(zk, node_read::data, "/a/" + std::to_string(i));
        co_await r.server.until([&] { return r.server.count("get /a/999") == 1; });
        r.leave(zk, node_read::stat, "/a");
        own.reset();
        co_await next_turns(r.server);
        r.server.answer = [](const request&) { return reply{}; };
        r.server.drop();
        co_await r.until_told("connected", 2);
        r.read(zk, node_read::data, "/a/next");
        co_await r.until_told("/a/next: Success");
        CHECK(r.server.count("remove watch /a") == 0);
        CHECK(r.server.count("remove watch /a/own") == 0);
        CHECK_FALSE(r.server.watched("/a"));
        CHECK_FALSE(r.server.watched("/a/own"));  // the library does not set it again
        CHECK(r.core->watches() == 0);
        r.feed.reset();
    };
    r.run(body);
}

TEST_CASE("node_feed: bad paths and one that was moved from and a listener that throws", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.notes->throws = true;
        co_await r.begin(zk);
        CHECK(code_thrown_by([&] { static_cast<void>(toolbox(zk).feed("a", r.notes)); }) == errc::invalid_path);
        const node_feed other = std::move(*r.feed);
        CHECK(code_thrown_by([&] { r.feed->read(node_read::data, "/a"); }) == errc::invalid_argument);
        CHECK(code_thrown_by([&] { r.feed->leave(node_read::data, "/a"); }) == errc::invalid_argument);
        co_await zk.get("/x");
    };
    r.run(body);
}

TEST_CASE("node_feed: a credential that a server accepts is told, one that it refuses is not", "[feed]") {
    feed_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        co_await r.begin(zk);
        co_await zk.add_auth("digest", "user:password");
        co_await r.until_told("authenticated");
        r.server.answer = [](const request& q) -> std::optional<reply> {
            if (std::holds_alternative<add_auth_request>(q)) return refusal(zk_errc::unimplemented);
            return reply{};
        };
        const std::error_code refused = co_await code_of(zk.add_auth("other", "x"));
        CHECK(refused == zk_errc::unimplemented);
        co_await asio::post(r.loop.executor(), asio::use_awaitable);
        CHECK(r.notes->times("authenticated") == 1);
        r.feed.reset();
    };
    r.run(body);
}
