#include "interop/structures_peers.hpp"
#include "support/lock_directory.hpp"
#include "support/pace.hpp"
#include "support/test_client.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/certain.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace queue_tests {

namespace {

put_options priority(int n) {
    put_options how;
    how.priority(n);
    return how;
}

/// A queue of another library, and how ours is one.
struct other_queue {
    std::string program, kind;
    put_options how;
    std::string how_theirs;  // in the words of the peers
    bool has_claims() const { return kind.ends_with("-locked") || kind == "locking"; }

    work_queue ours(client zk, const std::string& path) const {
        work_queue_options options;
        options.layout(layout(path));
        return work_queue(std::move(zk), path, options);
    }
    std::string command(const char* verb, const std::string& path) const {
        return std::string(" ") + verb + " " + kind + " " + path;
    }
    queue_layout layout(const std::string& path) const {
        const std::string locks = kind.ends_with("-locked") ? path + "-locks" : std::string();
        if (kind.starts_with("plain")) return queue_layout::curator(locks);
        if (kind.starts_with("priority")) return queue_layout::curator_priority(locks);
        if (kind.starts_with("delay")) return queue_layout::curator_delay(locks);
        if (kind.starts_with("id")) return queue_layout::curator_id(locks);
        if (kind == "simple") return queue_layout::curator_simple();
        return kind == "queue" ? queue_layout::kazoo() : queue_layout::kazoo_locking();
    }
};

std::vector<other_queue> all_queues() {
    std::vector<other_queue> all;
    for (const char* suffix : {"", "-locked"}) {
        const auto add = [&](const char* kind, put_options how, const char* theirs) {
            all.push_back({"curator-structures", std::string(kind) + suffix, how, theirs});
        };
        add("plain", put_options(), "0");
        add("priority", put_options().priority(5), "5");
        add("delay", put_options(), "0");
        add("id", put_options().id("a/b"), "a/b");
    }
    all.push_back({"curator-structures", "simple", put_options(), "0"});
    all.push_back({"kazoo-structures", "queue", put_options(), "100"});
    all.push_back({"kazoo-structures", "locking", put_options(), "100"});
    return all;
}

/// Adds the items of an answer, "consumed,ITEM,...".
void add_items(std::multiset<std::string>& to, const std::string& answer) {
    for (std::size_t at = answer.find(','); at != std::string::npos;) {
        const std::size_t end = answer.find(',', at + 1);
        to.insert(answer.substr(at + 1, end == std::string::npos ? end : end - at - 1));
        at = end;
    }
}

/// The nodes of a queue that has its items below its path, for the message of a test that fails.
asio::awaitable<std::string> nodes_of(client zk, std::string path) {
    std::string text;
    for (const char* suffix : {"", "-taken", "-later", "-dead"}) {
        std::vector<std::string> names = co_await children_if_any(zk, path + suffix);
        text += "; " + path + suffix + " has " + std::to_string(names.size()) + ":";
        for (const std::string& name : names) text += " " + name;
    }
    co_return text;
}

/// Adds to a failure what the queue has then: who waits for which item.
asio::awaitable<void> or_tell_nodes(client zk, std::string path, asio::awaitable<void> step) {
    std::string failed;
    try {
        co_await std::move(step);
    } catch (const std::exception& e) {
        failed = e.what();
    }
    if (failed.empty()) co_return;
    failed += co_await nodes_of(zk, path);
    throw std::runtime_error(failed);
}

asio::awaitable<void> take_within_limit(work_queue q, std::string item) {
    const std::string got = co_await timeout(paced(20s), q.take());
    if (got != item) throw std::runtime_error("take() has \"" + got + "\" instead of \"" + item + "\"");
}

/// Takes the next item, which is to be this one.
asio::awaitable<void> take(client zk, work_queue q, std::string item) {
    const std::string path = q.path();
    return or_tell_nodes(std::move(zk), path, take_within_limit(std::move(q), std::move(item)));
}

}  // namespace

TEST_CASE("queues of Curator and kazoo: they take what ours puts, ours takes what they put, in the same order") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queues");
        structures_peers theirs(co_await asio::this_coro::executor);
        co_await theirs.ready();
        for (const other_queue& q : all_queues()) {
            INFO(q.kind);
            peer& library = q.program == "kazoo-structures" ? theirs.kazoo : theirs.curator;
            const std::string path = dir + "/" + q.kind;
            const work_queue ours = q.ours(zk, path);
            put_options how = q.how;
            for (const char* item : {"a", "b", "c"}) {
                co_await ours.put(item, how);
                // Curator has no order of items with the same time.
                if (q.kind.starts_with("delay")) how.delay(how.delay() + 10ms);
            }
            co_await ask(library, "x" + q.command("consume", path) + " 3", "consumed,a,b,c");
            for (const std::string item : {"d", "e"})
                co_await ask(library, "x" + q.command("put", path) + " " + item + " " + q.how_theirs, "put");
            co_await zk.sync(path);
            for (const char* item : {"d", "e"}) {
                delivery d = co_await ours.receive();
                CHECK(d.item() == item);
                co_await d.done();
            }
            const work_queue_info n = co_await ours.info();
            CHECK(n.waiting + n.claimed + n.dead == 0);
        }
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's queues: priorities, delays and items of several values mean the same to both") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queue-words");
        peer curator(co_await asio::this_coro::executor, "curator-structures");
        co_await curator.ready();
        const std::string urgent = dir + "/urgent", timed = dir + "/timed", several = dir + "/several";
        const auto curators = [&](const char* command, const std::string& path, std::string rest, const char* answer) {
            std::string line = "x " + std::string(command) + " " + path + " " + std::move(rest);
            return or_tell_nodes(zk, path, ask(curator, std::move(line), answer));
        };
        const work_queue priorities(zk, urgent, work_queue_options().layout(queue_layout::curator_priority()));
        const std::vector<std::pair<const char*, int>> items = {{"d", 4711}, {"b", -1}, {"c", 0}, {"a", -2147483648}};
        for (const auto& [item, n] : items) co_await priorities.put(item, priority(n));
        co_await curators("consume priority", urgent, "4", "consumed,a,b,c,d");
        for (const auto& [item, n] : items)
            co_await curators("put priority", urgent, std::string(item) + " " + std::to_string(n), "put");
        co_await zk.sync(urgent);
        for (const char* item : {"a", "b", "c", "d"}) co_await take(zk, priorities, item);

        // The second item is put before the first one is due, also by a slow machine.
        const std::chrono::milliseconds delay = paced(700ms);
        const work_queue delays(zk, timed, work_queue_options().layout(queue_layout::curator_delay()));
        const put_options later = put_options().delay(delay);
        co_await delays.put("later", later);
        co_await delays.put("now");
        co_await curators("consume delay", timed, "2", "consumed,now,later");
        const auto begin = boot_clock::now();
        co_await curators("put delay", timed, "later " + std::to_string(delay.count()), "put");
        co_await curators("put delay", timed, "now 0", "put");
        co_await zk.sync(timed);
        for (const char* item : {"now", "later"}) co_await take(zk, delays, item);
        CHECK(boot_clock::now() - begin >= delay);

        const work_queue values(zk, several, work_queue_options().layout(queue_layout::curator()));
        co_await curators("put-multi plain", several, "a b c", "put");
        co_await curators("put plain", several, "d", "put");
        co_await zk.sync(several);
        for (const char* item : {"d", "a", "b", "c"}) co_await take(zk, values, item);
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's queues with claims: an item whose consumer has failed in Curator is handed out by ours") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queues-failed");
        peer curator(co_await asio::this_coro::executor, "curator-structures");
        co_await curator.ready();
        for (const other_queue& q : all_queues()) {
            if (!q.has_claims() || q.program != "curator-structures") continue;
            INFO(q.kind);
            const std::string path = dir + "/" + q.kind;
            co_await ask(curator, "x" + q.command("put", path) + " item " + q.how_theirs, "put");
            co_await ask(curator, "x" + q.command("fail", path), "failed");
            co_await zk.sync(path);
            const work_queue ours = q.ours(zk, path);
            co_await take(zk, ours, "item");
        }
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("queues with claims: what one of both has claimed, the other one does not get") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queues-claims");
        structures_peers theirs(co_await asio::this_coro::executor);
        co_await theirs.ready();
        for (const other_queue& q : all_queues()) {
            if (!q.has_claims()) continue;
            INFO(q.kind);
            peer& library = q.program == "kazoo-structures" ? theirs.kazoo : theirs.curator;
            const std::string path = dir + "/" + q.kind;
            const work_queue ours = q.ours(zk, path);
            co_await ours.put("ours", q.how);
            co_await ours.put("theirs", q.how);
            const delivery job = co_await ours.receive();
            CHECK(job.item() == "ours");
            co_await ask(library, "x" + q.command("consume", path) + " 1", "consumed,theirs");
            co_await job.done();
            const work_queue_info n = co_await ours.info();
            CHECK(n.waiting == 0);
        }
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("queues without claims: an item that another library takes while ours works on it is told by done()") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queues-taken");
        structures_peers theirs(co_await asio::this_coro::executor);
        co_await theirs.ready();
        for (const other_queue& q : all_queues()) {
            if (q.has_claims()) continue;
            INFO(q.kind);
            peer& library = q.program == "kazoo-structures" ? theirs.kazoo : theirs.curator;
            const std::string path = dir + "/" + q.kind;
            const work_queue ours = q.ours(zk, path);
            co_await ours.put("job", q.how);
            const delivery job = co_await ours.receive();
            co_await ask(library, "x" + q.command("consume", path) + " 1", "consumed,job");
            const std::error_code code = co_await code_of(job.done());
            CHECK(code == errc::lock_lost);
            co_await zk.idle();
            const std::size_t claims = co_await count_children(zk, path + "-taken");
            CHECK(claims == 0);
        }
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("queues of Curator and kazoo: consumers of both libraries: each item is consumed once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t items = 60, for_others = 40;
        std::size_t all_of_ours = 0;
        const std::string dir = co_await fresh_directory(zk, "interop-queues-load");
        const auto executor = co_await asio::this_coro::executor;
        structures_peers theirs(executor);
        co_await theirs.ready();
        for (const other_queue& q : all_queues()) {
            INFO(q.kind);
            peer& library = q.program == "kazoo-structures" ? theirs.kazoo : theirs.curator;
            const std::string path = dir + "/" + q.kind;
            const work_queue ours = q.ours(zk, path);
            co_await ours.create();
            // Curator's queues take all that they can get; the others take as much as they are asked for.
            const bool gathers = q.program == "curator-structures" && q.kind != "simple";
            if (gathers)
                co_await ask(library, "a" + q.command("gather", path), "gathering");
            else
                library.send("a" + q.command("consume", path) + " " + std::to_string(for_others));
            std::multiset<std::string> seen, all;
            bool all_taken = false;
            const auto take = [&]() -> asio::awaitable<void> {
                while (!all_taken && (gathers || seen.size() < items - for_others)) {
                    const std::optional<std::string> item = co_await ours.try_take();
                    if (item) seen.insert(*item);
                }
            };
            std::vector<std::string> batch;
            for (std::size_t i = 0; i < items; ++i) batch.push_back("item" + std::to_string(100 + i));
            all.insert(batch.begin(), batch.end());
            running taker(executor, take());
            co_await ours.put_all(std::move(batch), q.how);
            const std::string entries = q.kind == "locking" ? path + "/entries" : path;
            for (std::size_t left = 1; left > 0;) left = co_await count_children(zk, entries);
            all_taken = true;
            const std::exception_ptr failed = co_await taker.end();
            CHECK_FALSE(failed);
            const std::size_t of_ours = seen.size();
            if (gathers) library.send("a gathered " + std::to_string(items - of_ours));
            const std::string answer = co_await library.expect("a");
            add_items(seen, answer);
            CHECK(seen == all);
            if (of_ours == 0 || of_ours == items) WARN(q.kind << ": one of both has taken all");
            all_of_ours += of_ours;
        }
        CHECK(all_of_ours > 0);
        CHECK(all_of_ours < items * all_queues().size());
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's LockingQueue: it consumes what ours puts, and ours what it puts, by priority") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queue") + "/jobs";
        peer kazoo(co_await asio::this_coro::executor, "kazoo-structures");
        co_await kazoo.ready();
        const work_queue ours(zk, dir);
        co_await ours.put("second");
        co_await ours.put("third");
        co_await ours.put("first", priority(5));
        co_await ask(kazoo, "x consume locking " + dir + " 3", "consumed,first,second,third");
        co_await ask(kazoo, "x put locking " + dir + " b", "put");
        co_await ask(kazoo, "x put locking " + dir + " a 7", "put");
        co_await zk.sync(dir);
        const std::string a = co_await ours.take();
        const std::string b = co_await ours.take();
        CHECK(a == "a");
        CHECK(b == "b");
        const std::size_t left = co_await count_children(zk, dir + "/entries");
        CHECK(left == 0);
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's LockingQueue: many items, consumers of both: each item is consumed once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t items = 60, each = items / 3;
        const std::string dir = co_await fresh_directory(zk, "interop-queue-load") + "/jobs";
        const auto executor = co_await asio::this_coro::executor;
        peer kazoo(executor, "kazoo-structures");
        co_await kazoo.ready();
        const work_queue ours(zk, dir);
        std::vector<std::string> all;
        for (std::size_t i = 0; i < items; ++i) all.push_back("item" + std::to_string(i));
        co_await ours.put_all(all);
        std::multiset<std::string> seen;
        const std::string consume = " consume locking " + dir + " " + std::to_string(each);
        kazoo.send("a" + consume);
        kazoo.send("b" + consume);
        for (std::size_t i = 0; i < each; ++i) {
            const delivery job = co_await ours.receive();
            seen.insert(job.item());
            co_await job.done();
        }
        for (const std::string id : {"a", "b"}) {
            const std::string answer = co_await kazoo.expect(id);
            add_items(seen, answer);
        }
        CHECK(seen == std::multiset<std::string>(all.begin(), all.end()));
        co_await kazoo.exit();
    };
    with_client(body);
}

}  // namespace queue_tests
