// client_options::ephemeral_budget() and what creates several ephemeral nodes at once, or one after another: as many as
// fit, or none; and nothing waits for itself.

#include "testing/cost.hpp"
#include "testing/work_queue_scene.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cstddef>
#include <memory>

namespace ephemeral_budget_batches_tests {

using namespace work_queue_scenes;

namespace {

constexpr std::size_t claim_bytes = 4 + 36;  // "/q/taken/item-<...>", at most

client_options with_budget(std::size_t bytes) { return calm().ephemeral_budget(bytes); }

asio::awaitable<void> put_items(client zk, int n) {
    texts items;
    for (int i = 0; i < n; ++i) items.push_back(std::to_string(i));
    co_await work_queue(zk, "/q").put_all(std::move(items));
}

// Fills the budget up to `left` bytes.
asio::awaitable<std::string> fill(client zk, std::size_t budget, std::size_t left) {
    const std::string path = "/" + std::string(budget - left - 5, 'f');
    create_options how;
    how.mode(create_mode::ephemeral);
    co_await zk.create(path, "", how);
    co_return path;
}

asio::awaitable<void> receive_into(work_queue q, std::vector<delivery>& to, std::vector<ended>& failed) {
    auto one = [&]() -> asio::awaitable<void> {
        delivery d = co_await q.receive();
        to.push_back(std::move(d));
    };
    ended e = co_await end_of(one());
    if (e.code) failed.push_back(std::move(e));
}

}  // namespace

TEST_CASE("ephemeral budget: consumers beyond it wait for room, and all items are done") {
    for (const std::size_t budget : {std::size_t{200}, std::size_t{500}, std::size_t{2000}}) {
        CAPTURE(budget);
        fake_ensemble e;
        const client zk = e.client(with_budget(budget)), other = e.client(calm());
        int done = 0;
        std::size_t most = 0;
        auto play = [&]() -> asio::awaitable<void> {
            co_await put_items(other, 200);
            const work_queue q(zk, "/q");
            auto body = [&](delivery&) -> asio::awaitable<void> {
                most = std::max(most, e.children("/q/taken").size());
                co_await sleep(3ms);
                ++done;
            };
            consume_options how;
            how.parallel(40);
            const cost_meter meter(e);
            auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body, how); };
            running consumers(e.get_executor(), consume());
            for (int i = 0; i < 1000 && done < 200; ++i) co_await sleep(10ms);
            CHECK(done == 200);
            const cost c = meter.read();
            INFO(c.requests << " requests, " << c.listings << " listings");
            CHECK(c.requests <= 3 * 200 + 120 + 64);  // 3 for each item, listings, receipts
            consumers.cancel();
            co_await consumers.end();
            CHECK(most <= std::max<std::size_t>(1, budget / 2 / 20));
            CHECK(most >= budget / 2 / claim_bytes);
            co_await zk.idle();
            CHECK(e.children("/q/taken").empty());
            co_await zk.close();
            co_await other.close();
        };
        e.run(play);
    }
}

TEST_CASE("ephemeral budget: of many receive() as many get an item as fit, and the others when one is given back") {
    fake_ensemble e;
    const client zk = e.client(with_budget(500)), other = e.client(calm());
    auto play = [&]() -> asio::awaitable<void> {
        co_await put_items(other, 40);
        const work_queue q(zk, "/q");
        std::vector<delivery> have;
        std::vector<ended> failed;
        std::vector<running> all;
        for (int i = 0; i < 20; ++i) all.emplace_back(e.get_executor(), receive_into(q, have, failed));
        co_await sleep(5s);
        const std::size_t first = have.size();
        CHECK(first >= 500 / 2 / claim_bytes - 1);
        CHECK(e.children("/q/taken").size() == first);
        CHECK(failed.empty());
        const cost_meter meter(e);
        co_await sleep(60s);
        CHECK(meter.read().listings == 0);  // who waits for room asks the servers nothing
        // A try does not wait.
        std::optional<std::string> tried = co_await q.try_take();
        CHECK_FALSE(tried.has_value());
        for (int done = 0; done < 20; ++done) {
            REQUIRE_FALSE(have.empty());
            co_await have.back().done();
            have.pop_back();
            co_await sleep(1s);
        }
        for (running& r : all) co_await r.end();
        CHECK(failed.empty());
        CHECK(items(e).size() == 20);
        have.clear();
        co_await zk.close();
        co_await other.close();
    };
    e.run(play);
}

TEST_CASE("ephemeral budget: receive() without room for a single claim fails, and names the claim") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000)), other = e.client(calm());
    auto play = [&]() -> asio::awaitable<void> {
        co_await put_items(other, 40);
        const work_queue q(zk, "/q");
        const std::string first = co_await q.take();  // makes the receipt
        CHECK(first == "0");
        co_await zk.idle();
        const session on = co_await zk.current_session();
        std::size_t used = 0;
        for (const std::string& path : e.paths())
            if (e.stat(path)->ephemeral_owner == on.id()) used += path.size() + 4;
        CHECK(used > 0);
        const std::string filler = co_await fill(zk, 1000, used + 10);
        std::vector<delivery> have;
        std::vector<ended> failed;
        std::vector<running> all;
        for (int i = 0; i < 20; ++i) all.emplace_back(e.get_executor(), receive_into(q, have, failed));
        for (running& r : all) co_await r.end();
        CHECK(have.empty());
        REQUIRE(failed.size() == 20);
        for (const ended& one : failed) {
            CHECK(one.code == errc::too_many_ephemerals);
            CHECK_FALSE(one.unknown);
            CHECK(one.said.find("receive /q/taken/") == 0);
        }
        INFO(failed.front().said);
        CHECK(failed.front().said.find("client_options::ephemeral_budget()") != std::string::npos);
        CHECK(items(e).size() == 39);
        CHECK(e.children("/q/taken").empty());
        co_await zk.remove(filler);
        const std::string next = co_await q.take();
        CHECK(next == "1");
        co_await zk.close();
        co_await other.close();
    };
    e.run(play);
}

TEST_CASE("ephemeral budget: a batch of claims is cut where other nodes were faster") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000)), other = e.client(calm());
    auto play = [&]() -> asio::awaitable<void> {
        co_await put_items(other, 40);
        const work_queue q(zk, "/q");
        std::vector<delivery> have;
        std::vector<ended> failed;
        std::vector<running> all;
        // While the items are read, another create takes nearly all room.
        std::optional<running> filling;
        bool begun = false;
        e.on_step([&](std::string_view step) {
            if (begun || step.find("multi_read") == step.npos || step.find("/q/entries/") == step.npos) return;
            begun = true;
            auto both = [](client c) -> asio::awaitable<void> { co_await fill(c, 1000, 150); };
            filling.emplace(e.get_executor(), both(zk));
        });
        for (int i = 0; i < 20; ++i) all.emplace_back(e.get_executor(), receive_into(q, have, failed));
        co_await sleep(5s);
        e.on_step(nullptr);
        CHECK(begun);
        CHECK(failed.empty());
        CHECK(have.size() >= 1);
        CHECK(have.size() < 8);
        CHECK(e.children("/q/taken").size() == have.size());
        while (!have.empty()) {
            co_await have.back().done();
            have.pop_back();
            co_await sleep(1s);
        }
        for (running& r : all) co_await r.end();
        CHECK(failed.empty());
        if (filling) co_await filling->end();
        co_await zk.close();
        co_await other.close();
    };
    e.run(play);
}

TEST_CASE("ephemeral budget: transactions without room for a receipt wait for those of others") {
    fake_ensemble e;
    e.create("/r");
    e.create("/n");
    const client zk = e.client(with_budget(1000));
    auto play = [&]() -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        const std::string filler = co_await fill(zk, 1000, 100);  // one receipt has some 50 bytes
        const receipts with(on, "/r", open_acl(), missing_parents::fail);
        std::vector<ended> ends;
        auto apply = [&]() -> asio::awaitable<void> {
            transaction steps;
            steps.set("/n", "x");
            ended one = co_await end_of(with.apply(std::move(steps), "write"));
            ends.push_back(std::move(one));
        };
        std::vector<running> all;
        for (int i = 0; i < 20; ++i) all.emplace_back(e.get_executor(), apply());
        for (running& r : all) co_await r.end();
        REQUIRE(ends.size() == 20);
        for (const ended& one : ends) CHECK_FALSE(one.code);
        CHECK(e.stat("/n")->version == 20);
        co_await zk.remove(filler);
        // Without any room, none waits for itself.
        co_await zk.close();
    };
    e.run(play);
}

TEST_CASE("ephemeral budget: transactions fail where there is no room for a single receipt") {
    fake_ensemble e;
    e.create("/r");
    e.create("/n");
    const client zk = e.client(with_budget(1000));
    auto play = [&]() -> asio::awaitable<void> {
        const session on = co_await zk.current_session();
        co_await fill(zk, 1000, 10);
        const receipts with(on, "/r", open_acl(), missing_parents::fail);
        std::vector<ended> ends;
        auto apply = [&]() -> asio::awaitable<void> {
            transaction steps;
            steps.set("/n", "x");
            ended one = co_await end_of(with.apply(std::move(steps), "write"));
            ends.push_back(std::move(one));
        };
        const cost_meter meter(e);
        std::vector<running> all;
        for (int i = 0; i < 100; ++i) all.emplace_back(e.get_executor(), apply());
        for (running& r : all) co_await r.end();
        REQUIRE(ends.size() == 100);
        for (const ended& one : ends) {
            CHECK(one.code == errc::too_many_ephemerals);
            CHECK_FALSE(one.unknown);
            CHECK(one.said.find("write /r/_r-") == 0);
        }
        CHECK(e.stat("/n")->version == 0);
        co_await zk.idle();
        CHECK(meter.read().requests == 0);
        co_await zk.close();
    };
    e.run(play);
}

TEST_CASE("ephemeral budget: locks and permits of one acquire are had together, and errors name the node") {
    fake_ensemble e;
    const client zk = e.client(with_budget(1000));
    auto play = [&]() -> asio::awaitable<void> {
        const std::string filler = co_await fill(zk, 1000, 160);  // a contender has some 65 bytes, a lease as many
        {
            multi_mutex all(zk);
            all.add(mutex(zk, "/a")).add(mutex(zk, "/b")).add(mutex(zk, "/c"));
            const ended e1 = co_await end_of(all.acquire());
            INFO(e1.said);
            CHECK(e1.code == errc::too_many_ephemerals);
            CHECK(e1.said.find("acquire /c") == 0);
        }
        co_await zk.idle();
        CHECK(e.children("/a").empty());
        CHECK(e.children("/b").empty());
        {
            const semaphore s(zk, "/s", permits::fixed(10));
            const ended e1 = co_await end_of(s.acquire(4));
            INFO(e1.said);
            CHECK(e1.code == errc::too_many_ephemerals);
            CHECK(e1.said.find("acquire /s") == 0);
            co_await zk.idle();
            CHECK(e.children("/s/leases").empty());
            CHECK(e.children("/s/locks").empty());
            const lock_guard one = co_await s.acquire();
            CHECK(one.held());
        }
        co_await zk.idle();
        {
            const slots s(zk, "/slots", 10);
            std::vector<lock_guard> held;
            ended e1;
            auto one = [&]() -> asio::awaitable<void> {
                lock_guard g = co_await s.acquire();
                held.push_back(std::move(g));
            };
            for (int i = 0; i < 10 && !e1.code; ++i) {
                ended last = co_await end_of(timeout(30s, one()));
                e1 = std::move(last);
            }
            INFO(e1.said);
            CHECK((!e1.code || e1.code == errc::too_many_ephemerals));
        }
        co_await zk.remove(filler);
        co_await zk.close();
        CHECK(e.sessions() == 0);
    };
    e.run(play);
}

}  // namespace ephemeral_budget_batches_tests
