#include "testing/transact_steps.hpp"

#include <asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace transact_tests {

TEST_CASE("transact: what is read and written is one transaction, and the body's value is the result") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "10");
        outcome o = co_await try_transact(zk, &move_one);
        CHECK(o.done == "10");
        CHECK(e.data("/a") == "9");
        CHECK(e.data("/b") == "1");
        CHECK(e.stat("/a")->mzxid == e.stat("/b")->czxid);
        const std::size_t before = e.requests(zk);
        o = co_await try_transact(zk, &move_one);
        CHECK(o.done == "10");
        CHECK(e.requests(zk) == before + 3);  // two reads, and the transaction
        CHECK(e.children("/receipts").size() == 1);
        auto nothing = [](unit&) -> asio::awaitable<void> { co_return; };
        const std::size_t still = e.requests(zk);
        co_await transact(zk, nothing);
        CHECK(e.requests(zk) == still);
    });
}

TEST_CASE("transact: the body sees its own writes, and what it has read first") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "old");
        e.create("/gone", "x");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            seen a = co_await u.get("/a");
            CHECK((a && a->data == "old" && a->stat.version == 0));
            if (++runs == 1) e.set("/a", "theirs");
            if (runs == 2) CHECK(false);
            a = co_await u.get("/a");
            CHECK((a && a->data == "old"));
            u.set("/a", "mine");
            u.create("/new", "1");
            u.set("/new", "2");
            u.remove("/gone");
            const std::vector<std::string> paths{"/new", "/a", "/gone", "/nowhere", "/a"};
            const std::vector<seen> all = co_await u.get_all(paths);
            CHECK(all.size() == 5);
            CHECK((all[0] && all[0]->data == "2"));
            CHECK((all[1] && all[1]->data == "mine"));
            CHECK_FALSE(all[2]);
            CHECK_FALSE(all[3]);
            CHECK((all[4] && all[4]->data == "mine"));
            co_return "done";
        };
        const outcome conflict = co_await try_transact(zk, body, certain().tries(1));
        CHECK(conflict.code == zk_errc::bad_version);
        CHECK(e.data("/a") == "theirs");
        CHECK_FALSE(e.exists("/new"));
        CHECK(e.exists("/gone"));
    });
}

// Two clients run a body that reads a counter and then writes a node that the counter names: the write of the one that
// comes second is refused, and its condition, the counter's version, stands behind that write.
TEST_CASE("transact: a write that is refused before a condition that does not hold is a conflict") {
    struct row {
        const char* name;
        std::function<void(unit&, const std::string& id)> write;
        std::function<bool(const fake_ensemble&)> both_done;
    };
    const std::vector<row> rows{
        {"create", [](unit& u, const std::string& id) { u.create("/orders/" + id); },
         [](const fake_ensemble& e) { return e.exists("/orders/10") && e.exists("/orders/11"); }},
        {"remove", [](unit& u, const std::string& id) { u.remove("/old/" + id); },
         [](const fake_ensemble& e) { return e.children("/old").empty(); }},
        {"set", [](unit& u, const std::string& id) { u.set("/old/" + id, "x"), u.remove("/old/" + id); },
         [](const fake_ensemble& e) { return e.children("/old").empty(); }},
        {"create below", [](unit& u, const std::string& id) { u.remove("/old/" + id), u.create("/orders/" + id); },
         [](const fake_ensemble& e) { return e.exists("/orders/10") && e.exists("/orders/11"); }},
    };
    for (const row& r : rows) {
        for (const bool with_receipts : {true, false}) {
            for (std::uint64_t seed = 1; seed <= 10; ++seed) {
                INFO(r.name << ", receipts " << with_receipts << ", seed " << seed);
                with_ensemble(
                    [&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
                        const client other = e.client(calm());
                        e.create("/next", "10");
                        e.create("/orders");
                        e.create("/old/10");
                        e.create("/old/11");
                        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
                            const seen next = co_await u.get("/next");
                            const std::string id = next->data;
                            r.write(u, id);
                            u.set("/next", std::to_string(std::stoi(id) + 1));
                            co_return id;
                        };
                        const transact_options how = with_receipts ? certain() : transact_options();
                        outcome mine, theirs;
                        const auto play = [&](client c, outcome& o) -> asio::awaitable<void> {
                            o = co_await try_transact(c, body, how);
                        };
                        running a(e.get_executor(), play(zk, mine)), b(e.get_executor(), play(other, theirs));
                        co_await a.end();
                        co_await b.end();
                        INFO(mine.what << theirs.what);
                        CHECK((mine.done && theirs.done && mine.done != theirs.done));
                        CHECK(r.both_done(e));
                        CHECK(e.data("/next") == "12");
                        co_await other.close();
                    },
                    seed);
            }
        }
    }
}

TEST_CASE("transact: a write that is refused beside a node that was missing, and is there now, is a conflict") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/parent/child");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const seen done = co_await u.get("/done");
            if (done) co_return "was done";
            if (++runs == 1) e.create("/done");
            u.remove("/parent");  // refused: it is not empty
            u.create("/done");
            co_return "done";
        };
        const outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "was done");
        CHECK(runs == 1);
    });
}

TEST_CASE("transact: a write that is refused while all conditions hold is an error, which costs two more requests") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/next", "10");
        e.create("/orders/10");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const seen next = co_await u.get("/next");
            u.create("/orders/" + next->data);
            u.set("/next", "11");
            co_return "done";
        };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.code == zk_errc::node_exists);
        CHECK_FALSE(o.unknown);
        CHECK(o.what.find("/orders/10") != std::string::npos);
        CHECK(runs == 1);
        const std::size_t before = e.requests(zk);
        o = co_await try_transact(zk, body);
        CHECK(o.code == zk_errc::node_exists);
        CHECK(e.requests(zk) == before + 4);  // a read, the transaction, a sync, and the stat of /next
        const auto blind = [&](unit& u) -> asio::awaitable<std::string> {
            u.create("/orders/10");
            co_return "done";
        };
        const std::size_t between = e.requests(zk);
        o = co_await try_transact(zk, blind);
        CHECK(o.code == zk_errc::node_exists);
        CHECK(e.requests(zk) == between + 1);
    });
}

TEST_CASE("transact: get_all() is few requests, and repeats what a lost connection has cost") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        std::vector<std::string> paths;
        for (int i = 0; i < 50; ++i) {
            paths.push_back("/n" + std::to_string(i));
            if (i % 5 != 0) e.create(paths.back(), std::to_string(i));
        }
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            std::vector<seen> all = co_await u.get_all(paths);
            all = co_await u.get_all(paths);  // all is known
            int sum = 0;
            for (const seen& n : all) sum += number_in(n);
            CHECK(all.size() == 50);
            co_return std::to_string(sum);
        };
        co_await zk.sync();
        const std::size_t before = e.requests(zk);
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "1000");
        CHECK(e.requests(zk) <= before + 7);  // one by one: 50 more
        e.lose_answer(zk, "multi_read");
        o = co_await try_transact(zk, body);
        CHECK(o.done == "1000");
        e.refuse("/n8", zk_errc::no_auth);
        o = co_await try_transact(zk, body);
        CHECK(o.code == zk_errc::no_auth);
        e.accept("/n8");
        const auto bad = [&](unit& u) -> asio::awaitable<std::string> {
            const std::vector<std::string> wrong{"/a", "no/slash"};
            co_await u.get_all(wrong);
            co_return "";
        };
        o = co_await try_transact(zk, bad);
        CHECK(o.code == errc::invalid_path);
    });
}

TEST_CASE("transact: after a conflict the body runs again, and reads what is there now") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.lag();
        e.create("/a", "10");
        e.create("/b", "0");
        std::vector<std::string> seen_by_runs;
        std::function<void()> beside;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const std::string sum = co_await move_one(u);
            seen_by_runs.push_back(sum);
            if (beside) std::exchange(beside, nullptr)();
            co_return sum;
        };
        beside = [&] { e.set("/b", "5"); };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "15");
        CHECK(e.data("/b") == "6");
        CHECK(seen_by_runs.back() == "15");
        beside = [&] { e.remove("/a"); };
        o = co_await try_transact(zk, body);
        CHECK(o.done == "6");
        CHECK(e.data("/a") == "-1");
        CHECK(e.data("/b") == "7");
        e.remove("/a");
        beside = [&] { e.create("/a", "100"); };
        o = co_await try_transact(zk, body);
        CHECK(o.done == "107");
        CHECK(e.data("/a") == "99");
    });
}

TEST_CASE("transact: after a conflict, all that was read is asked for in one request") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/b", "2");
        std::vector<std::size_t> requests;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            co_await pause(10ms);
            requests.push_back(e.requests(zk));
            std::string text;
            for (const char* path : {"/a", "/b", "/missing"}) {
                const seen n = co_await u.get(path);
                text += n ? n->data : "-";
            }
            requests.push_back(e.requests(zk));
            if (requests.size() == 2) e.set("/a", "3");
            co_return text;
        };
        co_await zk.sync();
        const std::size_t before = e.requests(zk);
        const outcome o = co_await try_transact(zk, body, transact_options());
        CHECK(o.done == "32-");
        CHECK(requests == std::vector<std::size_t>{before, before + 3, before + 6, before + 6});
    });
}

TEST_CASE("transact: a body that only reads is told one moment's state") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/b", "1");
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const seen a = co_await u.get("/a");
            if (++runs == 1) {
                e.set("/a", "0");
                e.set("/b", "2");
            }
            const seen b = co_await u.get("/b");
            co_return std::to_string(number_in(a) + number_in(b));
        };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "2");
        CHECK(runs == 2);
        CHECK(e.children("/receipts").empty());
        CHECK(e.stat("/a")->version == 1);
        // Nothing is uncertain about it.
        for (int i = 0; i < 3; ++i) e.lose_answer(zk, "multi");
        o = co_await try_transact(zk, body, transact_options());
        CHECK(o.done == "2");
    });
}

TEST_CASE("transact: a node that was read as missing has to be missing at the end") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/dir");
        int runs = 0, beside_at = 0;
        std::string beside;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            const seen one = co_await u.get("/dir/one");
            const seen deep = co_await u.get("/missing/deep/two");
            if (++runs == beside_at) e.create(beside, "theirs");
            u.create("/result", std::to_string(runs));
            co_return (one ? one->data : "none") + (deep ? deep->data : "none");
        };
        outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "nonenone");
        CHECK(e.data("/result") == "2");  // the first run did not know that the parents are missing as well
        CHECK_FALSE(e.exists("/missing"));
        CHECK_FALSE(e.exists("/dir/one"));

        struct disturbance {
            const char* creates;
            int at;
            const char* expected;
            const char* run;
        };
        for (const disturbance d :
             {disturbance{"/dir/one", 1, "theirsnone", "3"}, disturbance{"/dir/one", 2, "theirsnone", "3"},
              disturbance{"/missing/deep/two", 1, "nonetheirs", "2"},
              disturbance{"/missing/deep/two", 2, "nonetheirs", "3"},
              disturbance{"/missing/deep", 1, "nonenone", "1"},  // it may be there
              disturbance{"/missing/deep", 2, "nonenone", "3"}, disturbance{"/missing", 2, "nonenone", "3"}}) {
            INFO(d.creates << " is created during run " << d.at);
            e.remove("/result");
            for (const char* p : {"/dir/one", "/missing/deep/two", "/missing/deep", "/missing"})
                if (e.exists(p)) e.remove(p);
            beside = d.creates;
            beside_at = d.at;
            runs = 0;
            o = co_await try_transact(zk, body);
            CHECK(o.done == d.expected);
            CHECK(e.data("/result") == d.run);
        }
        // The body that makes the parents itself.
        const auto makes = [](unit& u) -> asio::awaitable<std::string> {
            const seen n = co_await u.get("/x/y");
            u.create("/x");
            u.create("/x/y", "1");
            co_return n ? n->data : "none";
        };
        o = co_await try_transact(zk, makes);
        CHECK(o.done == "none");
        CHECK(e.data("/x/y") == "1");
    });
}

TEST_CASE("transact: a node that was read as missing, below one that the body has written before") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        int runs = 0;
        const auto reading_behind = [&](std::function<void(unit&)> write) {
            runs = 0;
            return [&, write = std::move(write)](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                write(u);
                const seen n = co_await u.get("/order/items");
                co_return n ? n->data : "none";
            };
        };
        // Not read: only the servers know that there is no /order.
        const body_function sets = reading_behind([](unit& u) { u.set("/order", "1"); });
        outcome o = co_await try_transact(zk, sets, certain().tries(5));
        CHECK(o.what == "set /order: no such node (there is no node)");
        CHECK(runs == 2);
        const body_function removes = reading_behind([](unit& u) { u.remove("/order"); });
        o = co_await try_transact(zk, removes, certain().tries(5));
        CHECK(o.what == "remove /order: no such node (there is no node)");
        CHECK(runs == 2);
        const body_function creates = reading_behind([](unit& u) { u.create("/order", "1"); });
        o = co_await try_transact(zk, creates, certain().tries(5));
        CHECK(o.done == "none");
        CHECK(runs == 2);
        CHECK(e.data("/order") == "1");
        o = co_await try_transact(zk, creates, certain().tries(5));
        CHECK(o.code == zk_errc::node_exists);
    });
}

TEST_CASE("transact: without its chroot nothing can be missing for certain, and that is an error") {
    fake_ensemble e;
    const client zk = e.client(client_options("fake/not/there").session_timeout(20s));
    auto all = [&]() -> asio::awaitable<void> {
        const auto body = [](unit& u) -> asio::awaitable<std::string> {
            co_await u.get("/a/b");
            co_return "";
        };
        const outcome o = co_await try_transact(zk, body, transact_options());
        CHECK(o.code == zk_errc::no_node);
        co_await zk.close();
    };
    e.run(all);
}

TEST_CASE("transact: a write that is not possible is the caller's error, if what was read holds") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        e.create("/a/child", "1");
        int runs = 0;
        const auto failing = [&](std::function<void(unit&)> write) {
            runs = 0;
            return [&, write = std::move(write)](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                u.create("/never", "");
                write(u);
                co_return "";
            };
        };
        const auto check = [&](const body_function& body, std::error_code code,
                               std::string text) -> asio::awaitable<void> {
            const outcome o = co_await try_transact(zk, body);
            INFO(o.what);
            CHECK(o.code == code);
            CHECK_FALSE(o.unknown);
            CHECK(o.what.find(text) == 0);
            CHECK(runs == 1);
            CHECK_FALSE(e.exists("/never"));
        };
        const body_function blind_set = failing([](unit& u) { u.set("/missing", "x"); });
        co_await check(blind_set, zk_errc::no_node, "transact /missing: no such node (step 2, set)");
        const body_function blind_create = failing([](unit& u) { u.create("/a", "x"); });
        co_await check(blind_create, zk_errc::node_exists, "transact /a: node exists (step 2, create)");
        const body_function orphan = failing([](unit& u) { u.create("/no/parent", "x"); });
        co_await check(orphan, zk_errc::no_node, "transact /no/parent: no such node (step 2, create");
        const body_function not_empty = failing([](unit& u) { u.remove("/a"); });
        co_await check(not_empty, zk_errc::not_empty, "transact /a: ");
        const body_function twice = failing([](unit& u) {
            u.remove("/a/child");
            u.remove("/a/child");
        });
        co_await check(twice, zk_errc::no_node, "remove /a/child: no such node");
        CHECK(e.exists("/a/child"));
        const body_function large = failing([](unit& u) { u.set("/a", std::string(2000000, 'x')); });
        co_await check(large, errc::too_large, "transact: request too large");
        const body_function container =
            failing([](unit& u) { u.create("/c", "", create_options().mode(create_mode::container)); });
        co_await check(container, errc::invalid_argument, "transact (step 2) /c: ");
        const body_function bad = failing([](unit& u) { u.set("no/slash", ""); });
        co_await check(bad, errc::invalid_path, "set no/slash: ");
    });
}

TEST_CASE("transact: a write that contradicts what was read is refused only if that still holds") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        int runs = 0;
        bool beside = false;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            const seen n = co_await u.get("/dir/n");
            if (std::exchange(beside, false)) e.create("/dir/n", "theirs");
            u.set("/dir/n", "mine");
            co_return n ? n->data : "none";
        };
        for (const char* directory : {"", "/dir"}) {
            if (*directory) e.create(directory);
            runs = 0;
            const outcome refused = co_await try_transact(zk, body);
            CHECK(refused.code == zk_errc::no_node);
            CHECK(refused.what == "set /dir/n: no such node (the body sees no node there)");
            CHECK(runs == (*directory ? 1 : 2));
            CHECK_FALSE(e.exists("/dir/n"));
        }
        beside = true;
        const outcome o = co_await try_transact(zk, body);
        CHECK(o.done == "theirs");
        CHECK(e.data("/dir/n") == "mine");
    });
}

TEST_CASE("transact: what the body throws is passed on, and nothing is written") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        int runs = 0;
        for (const std::error_code code :
             {make_error_code(errc::session_expired), make_error_code(zk_errc::bad_version),
              make_error_code(zk_errc::connection_loss)}) {
            const auto thrower = [&](unit& u) -> asio::awaitable<std::string> {
                ++runs;
                co_await move_one(u);
                throw error(code, "mine", "/a");
            };
            const outcome o = co_await try_transact(zk, thrower);
            CHECK(o.code == code);
            CHECK(o.what.find("mine /a: ") == 0);
        }
        CHECK(runs == 3);
        CHECK(e.data("/a") == "1");
        CHECK_FALSE(e.exists("/b"));
        bool caught = false;
        auto other = [](unit&) -> asio::awaitable<int> {
            throw 42;
            co_return 1;
        };
        try {
            co_await transact(zk, other);
        } catch (int n) {
            caught = n == 42;
        }
        CHECK(caught);
        body_function empty;
        const outcome refused = co_await try_transact(zk, empty);
        CHECK(refused.code == errc::invalid_argument);
    });
}

TEST_CASE("transact: a unit ends with its body") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "1");
        std::optional<unit> kept;
        std::optional<running> late;
        std::error_code late_code;
        const auto read_later = [&](unit u) -> asio::awaitable<void> { late_code = co_await code_of(u.get("/b")); };
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            kept = u;
            co_await u.get("/a");
            late.emplace(e.get_executor(), read_later(u));
            co_await asio::post(e.get_executor(), asio::use_awaitable);
            co_return "";
        };
        const outcome o = co_await try_transact(zk, body);
        CHECK(o.done);
        co_await late->end();
        CHECK(late_code == errc::invalid_argument);
        std::error_code code = co_await code_of(kept->get("/a"));
        CHECK(code == errc::invalid_argument);
        const std::vector<std::string> paths{"/a"};
        code = co_await code_of(kept->get_all(paths));
        CHECK(code == errc::invalid_argument);
        CHECK_THROWS_AS(kept->set("/a", "x"), error);
        const unit moved = std::move(*kept);
        code = co_await code_of(kept->get("/a"));
        CHECK(code == errc::invalid_argument);
        CHECK_THROWS_AS(kept->remove("/a"), error);
        CHECK(e.data("/a") == "1");
    });
}

TEST_CASE("transact: sequential nodes, and what several bodies put into a queue") {
    with_ensemble([](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        e.create("/a", "2");
        e.create("/items");
        const auto take_and_order = [](unit& u) -> asio::awaitable<bool> {
            const seen stock = co_await u.get("/a");
            if (number_in(stock) == 0) co_return false;
            u.set("/a", std::to_string(number_in(stock) - 1));
            u.create("/items/order-", "x", create_options().mode(create_mode::persistent_sequential));
            co_return true;
        };
        int sold = 0;
        const auto buy = [&]() -> asio::awaitable<void> {
            const bool bought = co_await transact(zk, take_and_order, certain());
            sold += bought;
        };
        std::vector<running> buyers;
        for (int i = 0; i < 6; ++i) buyers.emplace_back(e.get_executor(), buy());
        for (running& r : buyers) co_await r.end();
        CHECK(sold == 2);
        CHECK(e.data("/a") == "0");
        CHECK(e.children("/items").size() == 2);
    });
}

}  // namespace transact_tests
