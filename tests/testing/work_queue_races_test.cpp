#include "testing/work_queue_scene.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace work_queue_races_tests {

using namespace work_queue_scenes;

namespace {

// What get() of kazoo's LockingQueue sends, once: the name of the item that it has claimed. Nothing: no item was free.
asio::awaitable<std::optional<std::string>> claim_as_kazoo(client zk) {
    node_children items = co_await zk.children("/q/entries");
    const node_children taken = co_await zk.children("/q/taken");
    std::sort(items.names.begin(), items.names.end());
    std::erase_if(items.names, [&](const std::string& name) {
        return std::find(taken.names.begin(), taken.names.end(), name) != taken.names.end();
    });
    if (items.names.empty()) co_return std::nullopt;
    const create_options ephemeral = create_options().mode(create_mode::ephemeral);
    const std::optional<created> ours =
        co_await zk.create_unless_exists("/q/taken/" + items.names.front(), "id", ephemeral);
    if (!ours) co_return std::nullopt;
    co_return std::move(items.names.front());
}

// get(), and consume() at once.
asio::awaitable<std::optional<std::string>> take_as_kazoo(client zk) {
    const std::optional<std::string> name = co_await claim_as_kazoo(zk);
    if (!name) co_return std::nullopt;
    const std::string item = "/q/entries/" + *name, claim = "/q/taken/" + *name;
    std::optional<node_data> found;
    try {
        found = co_await zk.get(item);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    transaction steps;
    if (found) steps.remove(item);
    steps.remove(claim);
    co_await zk.multi(std::move(steps));
    if (!found) co_return std::nullopt;
    co_return std::move(found->data);
}

}  // namespace

TEST_CASE("work_queue: whoever is always too late for the first item gets a later one") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q");
            texts all;
            for (int i = 0; i < 60; ++i) all.push_back(std::to_string(i));
            co_await q.put_all(all);
            std::size_t taken = 0;
            s.ensemble.on_step([&](std::string_view step) {
                if (step.find("apply 0: multi") == std::string_view::npos) return;
                s.ensemble.remove("/q/entries/" + s.ensemble.children("/q/entries").front());
                ++taken;
            });
            const delivery got = co_await q.receive();
            s.ensemble.on_step(nullptr);
            CHECK(got.held());
            CHECK(taken < 20);
        });
    }
}

TEST_CASE("work_queue: shared with consumers and producers that do what kazoo's LockingQueue does") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.ensemble.lag(seed % 2 == 0);
        const client python = s.ensemble.client(calm()), other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q"), theirs(other, "/q");
            co_await q.create();
            co_await python.sync();
            constexpr std::size_t n = 30;
            texts got;
            const auto produce = [&]() -> asio::awaitable<void> {
                const create_options sequential = create_options().mode(create_mode::persistent_sequential);
                for (std::size_t i = 0; i < n; i += 2) {
                    co_await python.create("/q/entries/entry-100-", std::to_string(100 + i), sequential);
                    co_await theirs.put(std::to_string(101 + i));
                }
            };
            const auto kazoo = [&]() -> asio::awaitable<void> {
                while (got.size() < n) {
                    const std::optional<std::string> item = co_await take_as_kazoo(python);
                    if (item) got.push_back(*item);
                    co_await sleep(1ms);
                }
            };
            const auto consume = [&](const work_queue& from) -> asio::awaitable<void> {
                while (got.size() < n) {
                    const std::optional<std::string> item = co_await from.try_take();
                    if (item) got.push_back(*item);
                    co_await sleep(1ms);
                }
            };
            running a(s.ensemble.get_executor(), produce()), b(s.ensemble.get_executor(), kazoo());
            running c(s.ensemble.get_executor(), consume(q)), d(s.ensemble.get_executor(), consume(theirs));
            for (const running* r : {&a, &b, &c, &d}) {
                const std::error_code code = co_await r->code();
                CHECK_FALSE(code);
            }
            std::sort(got.begin(), got.end());
            texts all;
            for (std::size_t i = 0; i < n; ++i) all.push_back(std::to_string(100 + i));
            CHECK(got == all);
            co_await python.close();
            co_await other.close();
        });
    }
}

namespace {

// What a consumer of the queue holds, as far as it knows.
struct held_item {
    const delivery* of = nullptr;  // of zkasio
    std::string name;              // of kazoo: its claim stays until it removes the claim
    int count = 0;

    bool holds(const std::string& item) const { return (of && of->held() && of->name() == item) || name == item; }
};

}  // namespace

TEST_CASE("work_queue: over random faults, no item has two holders, of which one does what kazoo's LockingQueue does") {
    std::vector<int> held(3);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        std::mt19937 dice(static_cast<unsigned>(seed));
        const client_options brief = calm().session_timeout(6s);
        const std::vector<client> ours{e.client(brief), e.client(brief)};
        const client python = e.client(calm());
        e.run(work_queue(python, "/q").create());
        std::vector<held_item> holders(3);
        bool over = false;
        int twice = 0, without_node = 0;
        e.on_step([&](std::string_view) {
            for (const held_item& h : holders) {
                const bool holds = (h.of && h.of->held()) || !h.name.empty();
                if (!holds) continue;
                const std::string item = h.of ? h.of->name() : h.name;
                twice += std::count_if(holders.begin(), holders.end(),
                                       [&](const held_item& other) { return other.holds(item); }) > 1;
                const std::optional<node_stat> claim = e.stat("/q/taken/" + item);
                const client& owner = &h == &holders.back() ? python : ours[&h == &holders.front() ? 0 : 1];
                without_node += !claim || claim->ephemeral_owner != e.session_id(owner);
            }
        });
        const auto work = [&](std::size_t i) -> asio::awaitable<void> {
            const work_queue from(ours[i], "/q");
            held_item& h = holders[i];
            while (!over) {
                try {
                    delivery d = co_await from.receive();
                    h.of = &d;
                    ++h.count;
                    co_await sleep(std::chrono::milliseconds(dice() % 40));
                    h.of = nullptr;
                    if (dice() % 2)
                        co_await d.done();
                    else
                        co_await d.again();
                } catch (const error&) {
                    h.of = nullptr;
                }
            }
        };
        const auto work_as_kazoo = [&]() -> asio::awaitable<void> {
            held_item& h = holders.back();
            while (!over) {
                co_await sleep(std::chrono::milliseconds(2 + dice() % 10));
                try {
                    const std::optional<std::string> item = co_await claim_as_kazoo(python);
                    if (!item) continue;
                    h.name = *item;
                    ++h.count;
                    co_await sleep(5ms);
                    h.name.clear();
                    co_await python.remove("/q/taken/" + *item);  // gives the item back
                } catch (const error& failed) {
                    if (failed.code() != condition::retryable) throw;
                }
            }
        };
        const auto put = [&]() -> asio::awaitable<void> {
            const work_queue to(python, "/q");
            while (!over) {
                co_await to.put("x");
                co_await sleep(100ms);
            }
        };
        {
            running first(e.get_executor(), work(0)), second(e.get_executor(), work(1));
            const running third(e.get_executor(), work_as_kazoo()), producer(e.get_executor(), put());
            e.lag(seed % 2 == 0);
            e.lose_connections(5);
            for (int fault = 0; fault < 10; ++fault) {
                const client& zk = ours[dice() % 2];
                switch (dice() % 4) {
                    case 0: e.cut(zk); break;
                    case 1: e.hold_down(zk); break;
                    case 2: e.silence(zk); break;
                    default: e.let_in(zk);
                }
                e.run_for(std::chrono::milliseconds(dice() % 2000));
            }
            over = true;
            e.lose_connections(0);
            for (const client& zk : ours) e.let_in(zk);
            for (const running* r : {&third, &producer}) {
                const std::error_code failed = e.run(r->code());
                CHECK_FALSE(failed);
            }
            for (running* r : {&first, &second}) r->cancel();
            for (const running* r : {&first, &second}) e.run(r->end());
        }
        e.on_step(nullptr);
        CHECK(twice == 0);
        CHECK(without_node == 0);
        for (std::size_t i = 0; i < holders.size(); ++i) held[i] += holders[i].count;
        for (const client& zk : ours) e.run(zk.close());
        e.run(python.close());
    }
    for (const int n : held) CHECK(n > 500);
}

TEST_CASE(
    "work_queue: several processes that empty a long queue read an item two or three times, not each of them once") {
    constexpr int items = 2000, consumers = 30;
    scene s(3);
    const std::vector<client> all{s.zk, s.ensemble.client(calm()), s.ensemble.client(calm()),
                                  s.ensemble.client(calm())};
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        texts numbers;
        for (int i = 0; i < items; ++i) numbers.push_back(std::to_string(i));
        co_await q.put_all(numbers);
        const auto reads = [&] {
            std::uint64_t n = 0;
            for (const client& zk : all)
                for (const operation_stats& o : zk.stats().operations)
                    if (o.operation == "get") n += o.succeeded + o.failed;
            return n;
        };
        const std::uint64_t before = reads();
        int taken = 0;
        auto consume = [&](client zk) -> asio::awaitable<void> {
            const work_queue from(zk, "/q");
            while (taken < items) {
                ++taken;
                co_await from.take();
            }
        };
        std::vector<running> tasks;
        for (int i = 0; i < consumers; ++i)
            for (const client& zk : all) tasks.emplace_back(s.ensemble.get_executor(), consume(zk));
        for (const running& t : tasks) {
            const std::error_code failed = co_await t.code();
            CHECK_FALSE(failed);
        }
        CAPTURE(reads() - before);
        CHECK(reads() - before < 27 * items / 10);
        for (std::size_t i = 1; i < all.size(); ++i) co_await all[i].close();
    });
}

TEST_CASE("work_queue: an item that is written after it was read ahead is read again") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put_all(of("a", "b", "c"));
        co_await q.take();
        co_await s.zk.sync();
        s.ensemble.set("/q/entries/entry-100-0000000001", "B");
        texts received;  // after a refused claim in any order, see claimer::step_aside()
        for (int i = 0; i < 2; ++i) {
            delivery d = co_await q.receive();
            received.push_back(d.item());
            co_await d.done();
        }
        std::sort(received.begin(), received.end());
        CHECK(received == texts{"B", "c"});
    });
}

namespace {

// The claim of another client ends before the step `at` of a take(), or of what follows when that has listed once.
// Returns how many steps there were.
std::size_t end_a_claim_at(std::size_t at, bool is_later_listing) {
    std::size_t step = 0;
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.create();
        co_await theirs.put("a");
        delivery d = co_await theirs.receive();
        const std::string claim = "/q/taken/" + d.name();
        const auto end_claim = [&](std::string_view) {
            if (step++ == at) s.ensemble.remove(claim);
        };
        if (!is_later_listing) s.ensemble.on_step(end_claim);
        const auto take = [&]() -> asio::awaitable<void> { co_await q.take(); };
        running takes(s.ensemble.get_executor(), take());
        if (is_later_listing) {
            co_await sleep(1s);  // it has listed once
            s.ensemble.on_step(end_claim);
            co_await theirs.put("b");
            co_await theirs.try_take();
        }
        while (!takes.ended() && s.ensemble.exists(claim)) co_await sleep(1ms);
        for (int i = 0; !takes.ended() && i < 1000; ++i) co_await sleep(1ms);
        CHECK(takes.ended());
        s.ensemble.on_step(nullptr);
        takes.cancel();
        co_await takes.end();
        co_await other.close();
    });
    return step;
}

}  // namespace

TEST_CASE("work_queue: a claim that ends at any step of a listing is noticed") {
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("ends before step " << at);
        const std::size_t step = end_a_claim_at(at, false);
        steps = std::max(steps, at == 0 ? 16 : std::min<std::size_t>(step, 30));
    }
}

// The first listing of a consumer has the items first, the later ones the claims.
TEST_CASE("work_queue: a claim that ends at any step of a later listing is noticed") {
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("ends before step " << at);
        const std::size_t step = end_a_claim_at(at, true);
        steps = std::max(steps, at == 0 ? 24 : std::min<std::size_t>(step, 40));
    }
}

TEST_CASE("work_queue: a claim that was taken away is lost at the latest with done") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        bool cancelled = false;
        const auto work = [&]() -> asio::awaitable<void> {
            s.ensemble.remove("/q/taken/" + d.name());
            const ended e = co_await end_of(d.done());
            CHECK(e.code == errc::lock_lost);
            CHECK_FALSE(d.held());
            CHECK(d.reason() == loss_reason::node_deleted);
            try {
                co_await sleep(1h);
            } catch (const std::system_error&) {
                cancelled = true;
                throw;
            }
        };
        const ended run = co_await end_of(d.run(work));
        CHECK(run.said == "run /q/taken/entry-100-0000000000: lock lost (node deleted)");
        CHECK(cancelled);
        const std::string again = co_await q.take();
        CHECK(again == "a");
    });
}

TEST_CASE("work_queue: a consumer that is cut off has lost its item before another one gets it") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        s.ensemble.silence(s.zk);
        delivery second = co_await theirs.receive();
        CHECK_FALSE(d.held());
        CHECK(d.reason() != loss_reason::none);
        s.ensemble.let_in(s.zk);
        const ended e = co_await end_of(d.done());
        CHECK(e.code == errc::lock_lost);
        CHECK(second.held());
        co_await second.done();
        co_await other.close();
    });
}

TEST_CASE("work_queue: a claim that is lost with its connection is given back while the session lives") {
    fake_ensemble e;
    const client zk = e.client(calm().suspension(suspension_policy::lose)), other = e.client(calm());
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q"), theirs(other, "/q");
        co_await q.put("a");
        delivery d = co_await q.receive();
        const auto session = e.session_id(zk);
        e.cut(zk);
        const loss_reason why = co_await d.lost();
        CHECK(why == loss_reason::suspended);
        delivery second = co_await theirs.receive();
        CHECK(second.attempt() == 2);
        CHECK(e.session_id(zk) == session);
        d = delivery();
        co_await zk.idle();
        CHECK(e.owns(other, "/q/taken/" + second.name()));
        co_await second.done();
        co_await zk.close();
        co_await other.close();
    };
    e.run(all);
}

TEST_CASE("work_queue: an operator who removes the receipts while answers are lost leaves no item behind a claim") {
    std::size_t steps = 1;
    for (std::size_t at = 0; at < steps; ++at) {
        INFO("removed after " << at << " steps");
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q");
            co_await q.put("a");
            std::size_t step = 0;
            s.ensemble.lose_answer(s.zk, "multi");
            s.ensemble.on_step([&](std::string_view) {
                if (step++ == at)
                    asio::post(s.ensemble.context(), [&] {
                        for (const std::string& name : s.ensemble.children("/q/receipts"))
                            s.ensemble.remove("/q/receipts/" + name);
                    });
            });
            delivery d = co_await q.receive();
            s.ensemble.on_step(nullptr);
            steps = std::max(steps, at == 0 ? 40 : step);
            CHECK(d.item() == "a");
            CHECK(s.ensemble.children("/q/taken").size() == 1);
            co_await d.done();
        });
    }
}

TEST_CASE("work_queue: a put whose answer is lost with its session is not repeated, and says that it may be there") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("first");
        s.ensemble.lose_answer(s.zk, "multi");
        bool seen = false;
        s.ensemble.on_step([&](std::string_view step) {
            if (seen || step.find("deliver") != std::string_view::npos) return;
            seen = step.find("multi") != std::string_view::npos;
            if (seen) asio::post(s.ensemble.context(), [&] { s.ensemble.expire(s.zk); });
        });
        const ended e = co_await end_of(q.put("second"));
        s.ensemble.on_step(nullptr);
        CHECK(e.code == errc::session_expired);
        CHECK(e.unknown);
        CHECK(items(s.ensemble).size() <= 2);
        co_await q.put("third");
        const texts there = items(s.ensemble);
        CHECK(std::count(there.begin(), there.end(), "second") <= 1);
    });
}

TEST_CASE("work_queue: two operators revive the same item once") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        scene s(seed);
        const client other = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q"), theirs(other, "/q");
            co_await q.put("a");
            {
                delivery d = co_await q.receive();
                co_await d.reject("no");
            }
            const std::vector<dead_item> dead = co_await theirs.dead();
            REQUIRE(dead.size() == 1);
            int revived = 0;
            const auto revive = [&](const work_queue& in) -> asio::awaitable<void> {
                const bool here = co_await in.revive(dead[0].name);
                revived += here;
            };
            running a(s.ensemble.get_executor(), revive(q)), b(s.ensemble.get_executor(), revive(theirs));
            co_await a.end();
            co_await b.end();
            CHECK(revived == 1);
            CHECK(items(s.ensemble) == texts{"a"});
            co_await other.close();
        });
    }
}

TEST_CASE("work_queue: a pause, a delay and a wait keep nothing running when the client is closed") {
    fake_ensemble e;
    auto all = [&]() -> asio::awaitable<void> {
        const client zk = e.client(calm());
        const work_queue q(zk, "/q");
        co_await q.put_all(of("a", "b"));
        co_await q.put("late", put_options().delay(10min));
        delivery d = co_await q.receive();
        co_await d.again(10min);
        co_await q.take();
        const auto wait = [&]() -> asio::awaitable<void> { co_await q.receive(); };
        running waits(e.get_executor(), wait());
        co_await zk.idle();
        co_await sleep(1s);
        co_await zk.close();
        const std::error_code why = co_await waits.code();
        CHECK(why == errc::client_closed);
    };
    e.run(all);
    e.run_dry();
    CHECK(e.now() < 1min);
}

TEST_CASE("work_queue: all nodes have the queue's ACL") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const acl ours =
            acl_of(acl_entry(permission::all, anyone()), acl_entry(permission::read, ip_address("10.0.0.7")));
        const work_queue q(s.zk, "/q", work_queue_options().acl(ours));
        co_await q.put_all(of("a", "b"));
        co_await q.put("c", put_options().delay(1h));
        delivery dead = co_await q.receive();
        co_await dead.reject("no");
        delivery d = co_await q.receive();
        std::size_t nodes = 0;
        const texts paths = s.ensemble.paths();
        for (const std::string& path : paths) {
            const operations::acl_and_stat found = co_await s.zk.get_acl(path);
            INFO(path);
            CHECK(found.acl == ours);
            ++nodes;
        }
        CHECK(nodes >= 11);
        co_await d.done();
    });
}

TEST_CASE("work_queue: below a chroot, with contention") {
    fake_ensemble e(3);
    e.lag();
    e.create("/root");
    client_options below = client_options("fake/root").session_timeout(20s).connection_timeout(1h);
    const client zk = e.client(below), other = e.client(below);
    auto all = [&]() -> asio::awaitable<void> {
        const work_queue q(zk, "/q"), theirs(other, "/q");
        texts put, got;
        for (int i = 0; i < 40; ++i) put.push_back(std::to_string(100 + i));
        co_await q.put_all(put);
        const auto take = [&](const work_queue& from) -> asio::awaitable<void> {
            for (int i = 0; i < 5; ++i) {
                const std::string item = co_await from.take();
                got.push_back(item);
            }
        };
        std::vector<running> takers;
        for (int i = 0; i < 8; ++i) takers.emplace_back(e.get_executor(), take(i % 2 ? q : theirs));
        for (running& r : takers) co_await r.end();
        std::sort(got.begin(), got.end());
        CHECK(got == put);
        CHECK(e.children("/root/q/entries").empty());
        co_await zk.close();
        co_await other.close();
    };
    e.run(all);
}

TEST_CASE("work_queue: a refusal is told to those who wait, and ends no later wait") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        co_await q.put("a");
        s.ensemble.refuse("/q/taken", zk_errc::no_auth);
        const ended e = co_await end_of(q.receive());
        CHECK(e.code == zk_errc::no_auth);
        CHECK(e.said.find("/q/taken") != std::string::npos);
        s.ensemble.accept("/q/taken");
        s.ensemble.refuse("/q/entries", zk_errc::no_auth);
        const ended put = co_await end_of(q.put("b"));
        CHECK(put.code == zk_errc::no_auth);
        s.ensemble.accept("/q/entries");
        const std::string got = co_await q.take();
        CHECK(got == "a");
    });
}

TEST_CASE("work_queue: servers that are too busy put nothing off for ever") {
    scene s(5);
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        s.ensemble.throttle(30);
        texts got;
        const auto produce = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 10; ++i) co_await theirs.put(std::to_string(i), put_options().delay(i % 2 * 1s));
        };
        const auto consume = [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 10; ++i) {
                delivery d = co_await q.receive();
                got.push_back(d.item());
                co_await d.done();
            }
        };
        running a(s.ensemble.get_executor(), produce()), b(s.ensemble.get_executor(), consume());
        const std::error_code put = co_await a.code(), taken = co_await b.code();
        s.ensemble.throttle(0);
        CHECK_FALSE(put);
        CHECK_FALSE(taken);
        std::sort(got.begin(), got.end());
        CHECK(got == of("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
        co_await other.close();
    });
}

}  // namespace work_queue_races_tests
