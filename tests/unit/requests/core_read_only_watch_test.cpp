// What becomes of watches that were asked for while only a server without a quorum was connected: no server has set
// them, so the next connection compares.

#include "support/texts.hpp"
#include "unit/support/read_only_rig.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

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

}  // namespace

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

TEST_CASE("core, read-only: a change of the data fires no watch of the children, nor the other way round",
          "[core][watch]") {
    const bool data_changed = GENERATE(true, false);
    read_only_rig r;
    r.alone.answer = [](const request&) { return node(1, 2, 3); };
    r.quorum.answer = [&](const request&) { return data_changed ? node(1, 4, 3) : node(1, 2, 4); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await r.lose_quorum(zk);
        const auto data = co_await zk.get_and_watch("/a");
        const auto names = co_await zk.children_and_watch("/a");
        co_await r.regain_quorum(zk);
        co_await r.quorum.until([&] { return watched_reads(r.quorum).size() == 2; });
        co_await (data_changed ? data.changes : names.changes).changed();
        co_await zk.get("/b");  // behind both answers
        CHECK(r.core->watches() == 1);
        r.quorum.fire(data_changed ? node_event::children_changed : node_event::data_changed, "/a");
        const watch_event other = co_await (data_changed ? names.changes : data.changes).changed();
        CHECK(other.what == (data_changed ? node_change::children_changed : node_change::data_changed));
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
    r.quorum.answer = [](const request&) { return node(1, 1, 1); };  // as the first
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
