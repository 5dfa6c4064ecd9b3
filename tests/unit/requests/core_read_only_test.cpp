// What becomes of requests while only a server without a quorum is connected, and of their watches afterwards.

#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

client_options reader() { return rig::quick().allow_read_only(); }

/// A client with two servers: one of the ensemble, and one that has been cut off from it.
class read_only_rig {
public:
    explicit read_only_rig(client_options o = reader())
        : core(std::make_shared<detail::core>(loop.executor(), std::move(o), factory())) {
        alone.reachable = false;
    }

    template <class Body>
    void run(Body& body) {
        std::function<asio::awaitable<void>()> task = [&]() -> asio::awaitable<void> {
            const client zk = client_over(core);
            std::exception_ptr failed;
            try {
                co_await body(zk);
            } catch (...) {
                failed = std::current_exception();
            }
            co_await zk.close();
            if (failed) std::rethrow_exception(failed);
        };
        loop.run(task());
        CHECK(core->pending_operations() == 0);
        CHECK(core->watches() == 0);
        CHECK(quorum.backends_alive == 0);
        CHECK(alone.backends_alive == 0);
    }

    // Until the client reads from the server that was cut off.
    asio::awaitable<void> lose_quorum(client zk) {
        co_await zk.connected();
        quorum.reachable = false;
        quorum.drop();
        alone.reachable = true;
        co_await until_state(zk, session_state::read_only);
    }
    asio::awaitable<void> regain_quorum(client zk) {
        quorum.reachable = true;
        co_await zk.connected();
    }
    asio::awaitable<void> until_state(client zk, session_state wanted) {
        const auto reached = [&]() -> asio::awaitable<bool> { co_return zk.state() == wanted; };
        co_await eventually(reached);
    }

    fake_server quorum, alone;
    test_loop loop{std::chrono::seconds(20)};
    std::shared_ptr<detail::core> core;

private:
    // The client's own link is the first that makes a backend.
    backend_factory factory() {
        return [this](backend_listener& l) {
            if (!own_) own_ = &l;
            return (&l == own_ ? quorum : alone).factory()(l);
        };
    }
    backend_listener* own_ = nullptr;
};

reply node(std::int64_t czxid, std::int64_t mzxid, std::int64_t pzxid) {
    reply r;
    r.stat.czxid = czxid, r.stat.mzxid = mzxid, r.stat.pzxid = pzxid;
    return r;
}

bool asks_for_watch(const request& r) {
    const auto watch = [](const auto& of) {
        if constexpr (requires { of.watch; }) return of.watch;
        return false;
    };
    return std::visit(watch, r);
}

std::vector<std::string> watched_reads(const fake_server& s) {
    std::vector<std::string> all;
    for (const auto& r : s.requests)
        if (asks_for_watch(r.what)) all.push_back(r.text);
    return all;
}

asio::awaitable<void> keep_code(asio::awaitable<void> what, std::optional<std::error_code>& code) {
    code = co_await code_of(std::move(what));
}

}  // namespace

TEST_CASE("core, read-only: reads go to the server without a quorum, and nothing else", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        CHECK(r.alone.opened.back().read_only);
        CHECK(r.alone.opened.back().session_id == 0);
        co_await zk.get("/a");
        co_await zk.exists("/a");
        co_await zk.children("/a");
        co_await zk.get_acl("/a");
        co_await zk.get_config();
        CHECK(r.alone.texts() == texts{"get /a", "exists /a", "children /a", "get_acl /a", "get_config"});

        const std::string refused = co_await message_of(zk.set("/a", "x"));
        CHECK(refused == "set /a: the server is read-only (fake:2181 has no quorum, and only reads: wait for "
                         "client::connected())");
        std::vector<std::error_code> codes;
        codes.push_back(co_await code_of(zk.create("/a")));
        codes.push_back(co_await code_of(zk.remove("/a")));
        codes.push_back(co_await code_of(zk.set_acl("/a", open_acl())));
        codes.push_back(co_await code_of(zk.sync()));
        codes.push_back(co_await code_of(zk.reconfigure("", "3")));
        transaction steps;
        steps.remove("/a");
        codes.push_back(co_await code_of(zk.multi(std::move(steps))));
        CHECK(codes == std::vector<std::error_code>(6, zk_errc::not_read_only));
        CHECK(r.alone.requests.size() == 5);
        CHECK(r.quorum.requests.empty());
    };
    r.run(body);
}

TEST_CASE("core, read-only: requests of a session, and credentials, wait for the quorum", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got, set, presented;
        r.loop.spawn(keep_code(get(own, "/a"), got));
        r.loop.spawn(keep_code(test::set(own, "/a"), set));
        r.loop.spawn(keep_code(zk.add_auth("digest", "a:b"), presented));
        co_await zk.get("/b");
        CHECK_FALSE((got || set || presented));
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return got && set && presented; });
        CHECK(*got == std::error_code());
        CHECK(*set == std::error_code());
        CHECK(*presented == std::error_code());
        CHECK(r.alone.texts() == texts{"get /b"});
    };
    r.run(body);
}

TEST_CASE("core, read-only: what waits for a connection is sent, or refused, when such a server is found", "[core]") {
    read_only_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const session own = co_await zk.current_session();
        r.quorum.reachable = false;
        r.quorum.drop();
        co_await r.until_state(zk, session_state::suspended);
        std::optional<std::error_code> got, set, of_session;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        r.loop.spawn(keep_code(test::set(zk, "/a"), set));
        r.loop.spawn(keep_code(test::set(own, "/a"), of_session));
        r.alone.reachable = true;
        co_await r.alone.until([&] { return got && set; });
        CHECK(*got == std::error_code());
        CHECK(*set == zk_errc::not_read_only);
        CHECK_FALSE(of_session);
        co_await r.regain_quorum(zk);
    };
    r.run(body);
}

TEST_CASE("core, read-only: a watch is set by the next connection if its node has not changed", "[core][watch]") {
    read_only_rig r;
    r.alone.answer = r.quorum.answer = [](const request& q) {
        return path_of(q) == "/none" ? refusal(zk_errc::no_node) : node(1, 2, 3);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto data = co_await zk.get_and_watch("/a");
        const auto names = co_await zk.children_and_watch("/a");
        const auto none = co_await zk.exists_and_watch("/none");
        const auto left_alone = co_await zk.exists_and_watch("/left");
        const auto config = co_await zk.config_and_watch();
        CHECK(watched_reads(r.alone).empty());
        {
            const auto dropped = co_await zk.get_and_watch("/dropped");
        }
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return watched_reads(r.quorum).size() == 5; });
        std::vector<std::string> asked = watched_reads(r.quorum);
        std::sort(asked.begin(), asked.end());
        CHECK(asked == texts{"children /a", "exists /a", "exists /left", "exists /none", "get_config"});
        co_await zk.get("/b");  // behind these
        r.quorum.fire(node_event::data_changed, "/zookeeper/config");
        const watch_event of_config = co_await config.changes.changed();
        CHECK(of_config.what == node_change::data_changed);
        r.quorum.fire(node_event::data_changed, "/a");
        r.quorum.fire(node_event::children_changed, "/a");
        r.quorum.fire(node_event::created, "/none");
        const watch_event of_data = co_await data.changes.changed();
        CHECK(of_data.what == node_change::data_changed);
        const watch_event of_names = co_await names.changes.changed();
        CHECK(of_names.what == node_change::children_changed);
        const watch_event of_none = co_await none.changes.changed();
        CHECK(of_none.what == node_change::created);
    };
    r.run(body);
}

TEST_CASE("core, read-only: a watch fires on the next connection if its node has changed", "[core][watch]") {
    struct difference {
        const char* name;
        reply then, now;
        node_change data, children;
    };
    const reply gone = refusal(zk_errc::no_node);
    const std::vector<difference> all{
        {"changed", node(1, 2, 3), node(1, 4, 5), node_change::data_changed, node_change::children_changed},
        {"removed", node(1, 2, 3), gone, node_change::removed, node_change::removed},
        {"removed and created", node(1, 2, 3), node(9, 2, 3), node_change::data_changed, node_change::children_changed},
    };
    const difference d = GENERATE_COPY(from_range(all));
    INFO(d.name);
    read_only_rig r;
    r.alone.answer = [&](const request&) { return d.then; };
    r.quorum.answer = [&](const request&) { return d.now; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto data = co_await zk.get_and_watch("/a");
        const auto names = co_await zk.children_and_watch("/b");
        co_await r.regain_quorum(zk);
        const watch_event of_data = co_await data.changes.changed();
        CHECK(of_data.what == d.data);
        CHECK(of_data.path == "/a");
        const watch_event of_names = co_await names.changes.changed();
        CHECK(of_names.what == d.children);
    };
    r.run(body);
}

TEST_CASE("core, read-only: the watch of a missing node fires on the next connection if the node exists",
          "[core][watch]") {
    read_only_rig r;
    r.alone.answer = [](const request&) { return refusal(zk_errc::no_node); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto none = co_await zk.exists_and_watch("/a");
        const std::error_code missing = co_await code_of(zk.get_and_watch("/b"));
        CHECK(missing == zk_errc::no_node);
        CHECK(r.core->watches() == 1);
        co_await r.regain_quorum(zk);
        const watch_event created = co_await none.changes.changed();
        CHECK(created.what == node_change::created);
        CHECK(watched_reads(r.quorum) == texts{"exists /a"});
        // The look has set a watch that nobody needs any more.
        co_await r.quorum.until([&] { return !r.quorum.watched("/a"); });
    };
    r.run(body);
}

TEST_CASE("core, read-only: two servers that have shown a node differently: its watches fire", "[core][watch]") {
    read_only_rig r;
    std::int64_t version = 1;
    r.alone.answer = [&](const request&) { return node(1, version, 1); };
    r.quorum.answer = [](const request&) { return node(1, 2, 1); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto first = co_await zk.get_and_watch("/a");
        version = 2;
        const auto second = co_await zk.get_and_watch("/a");
        co_await r.regain_quorum(zk);
        for (const watch* const w : {&first.changes, &second.changes}) {
            const watch_event fired = co_await w->changed();
            CHECK(fired.path == "/a");
        }
    };
    r.run(body);
}

TEST_CASE("core, read-only: a look at a node whose answer is lost is repeated on the next connection",
          "[core][watch]") {
    read_only_rig r;
    r.alone.answer = [](const request&) { return node(1, 1, 1); };
    bool loses = true;
    r.quorum.answer = [&](const request& q) -> std::optional<reply> {
        if (asks_for_watch(q) && std::exchange(loses, false)) return std::nullopt;
        return node(1, 2, 1);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto seen = co_await zk.get_and_watch("/a");
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return watched_reads(r.quorum).size() == 1; });
        r.quorum.drop();
        const watch_event change = co_await seen.changes.changed();
        CHECK(change.what == node_change::data_changed);
        CHECK(watched_reads(r.quorum) == texts{"exists /a", "exists /a"});
    };
    r.run(body);
}

TEST_CASE("core, read-only: reads whose connection is lost are sent again, there or to the quorum", "[core]") {
    read_only_rig r(reader().retry(retry_policy::n_times(3, std::chrono::milliseconds(1))));
    const bool quorum_is_back = GENERATE(false, true);
    bool loses = true;
    r.alone.answer = [&](const request&) -> std::optional<reply> {
        if (std::exchange(loses, false)) return std::nullopt;
        return reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        co_await r.alone.until([&] { return r.alone.requests.size() == 1; });
        const std::string how = GENERATE("lost", "expired");
        if (quorum_is_back) r.quorum.reachable = true;
        how == "lost" ? r.alone.drop() : r.alone.expire();
        const auto ended = [&]() -> asio::awaitable<bool> { co_return got.has_value(); };
        co_await eventually(ended);
        CHECK(*got == std::error_code());
        CHECK(r.alone.requests.size() + r.quorum.requests.size() == 2);
    };
    r.run(body);
}

TEST_CASE("core, read-only: as many reads are under way as may be, and the rest follows", "[core]") {
    constexpr std::size_t window = 1000, all = 1100;
    read_only_rig r;
    r.alone.answer = [](const request&) { return std::optional<reply>(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::size_t answered = 0;
        const auto read = [&]() -> asio::awaitable<void> {
            co_await zk.get("/a");
            ++answered;
        };
        for (std::size_t i = 0; i < all; ++i) r.loop.spawn(read());
        co_await r.alone.until([&] { return r.alone.requests.size() == window; });
        co_await next_turns(r.alone);
        CHECK(r.alone.requests.size() == window);
        r.alone.reply_to_all();
        co_await r.alone.until([&] { return r.alone.requests.size() == all; });
        r.alone.reply_to_all();
        co_await r.alone.until([&] { return answered == all; });
    };
    r.run(body);
}

TEST_CASE("core, read-only: a read that the backend does not take", "[core][watch]") {
    read_only_rig r(reader().retry(retry_policy::never()));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        r.alone.refuse = [](const request&) { return make_error_code(zk_errc::bad_arguments); };
        const std::error_code refused = co_await code_of(zk.get_and_watch("/a"));
        CHECK(refused == zk_errc::bad_arguments);
        CHECK(r.core->watches() == 0);
        r.alone.refuse = [](const request&) { return std::make_error_code(std::errc::resource_unavailable_try_again); };
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/b"), got));
        co_await r.alone.until([&] { return r.alone.count("get /b") > 0; });
        CHECK_FALSE(got);
        r.alone.refuse = nullptr;
        co_await zk.get("/c");
        co_await r.alone.until([&] { return got.has_value(); });
        CHECK(*got == std::error_code());
    };
    r.run(body);
}

TEST_CASE("core, read-only: closing ends what is under way, and says no goodbye there", "[core]") {
    read_only_rig r;
    r.alone.answer = [](const request&) { return std::optional<reply>(); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        std::optional<std::error_code> got;
        r.loop.spawn(keep_code(get(zk, "/a"), got));
        co_await r.alone.until([&] { return r.alone.requests.size() == 1; });
        const close_result how = co_await zk.close();
        CHECK(how == close_result::session_left_to_expire);
        const auto ended = [&]() -> asio::awaitable<bool> { co_return got.has_value(); };
        co_await eventually(ended);
        CHECK(*got == errc::client_closed);
        CHECK(std::count(r.alone.log.begin(), r.alone.log.end(), "goodbye") == 0);
    };
    r.run(body);
}
