// A queue beside partners that fail, that may do less, or that other libraries have written.

#include "testing/work_queue_scene.hpp"

#include <zkasio/acl.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string_view>

namespace work_queue_partners_tests {

using namespace work_queue_scenes;

namespace {

// The path of an item, as large as a request or usual, that another client has put.
std::string put_foreign(scene& s, const layout_case& l, bool is_large) {
    std::string name = "queue-0000000000";
    switch (l.layout.kind()) {
        case queue_kind::kazoo_locking: name = "entry-100-0000000000"; break;
        case queue_kind::curator_priority: name = "queue-0000000010000000000"; break;
        case queue_kind::curator_delay: name = "queue-|00000001|0000000000"; break;
        case queue_kind::curator_id: name = "queue-|a|0000000000"; break;
        default: break;
    }
    const std::size_t size = is_large ? 1024 * 1024 - 200 : 20;
    std::string data(size, 'x');
    if (l.is_framed()) {
        std::string frame("\x00\x01\x00\x01\x01", 5);
        for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>((size - 10) >> shift & 0xff);
        data = frame + std::string(size - 10, 'x') + '\x02';
    }
    s.ensemble.create(l.items + "/" + name, data);
    return l.items + "/" + name;
}

// The layouts whose other library has claims as well.
std::vector<layout_case> layouts_with_claims() {
    std::vector<layout_case> all = all_layouts();
    std::erase_if(all, [](const layout_case& l) {
        return l.layout.kind() != queue_kind::kazoo_locking && l.layout.lock_path().empty();
    });
    return all;
}

class warnings {
public:
    explicit warnings(client_options& of) {
        of.log([this](const log_record& r) { all_.push_back(std::string(r.text())); }, log_level::warning);
    }
    std::size_t with(std::string_view text) const {
        return static_cast<std::size_t>(
            std::count_if(all_.begin(), all_.end(), [&](const std::string& w) { return w.find(text) != w.npos; }));
    }

private:
    texts all_;
};

}  // namespace

// ---------------------------------------- claims of other clients

TEST_CASE("work_queue: whichever answer to the removal of a claim is lost, the claim of another library stays") {
    for (const layout_case& l : layouts_with_claims())
        for (const bool is_large : {false, true})
            for (const char* lost : {"multi", "remove"}) {
                INFO(l.name << (is_large ? ", large" : "") << ", " << lost);
                scene s;
                s.run([&]() -> asio::awaitable<void> {
                    const work_queue q = l.queue(s.zk);
                    co_await q.create();
                    const std::string item = put_foreign(s, l, is_large);
                    delivery d = co_await q.receive();
                    const std::string claim = l.claims + "/" + d.name();
                    s.ensemble.lose_answer(s.zk, lost);
                    bool is_taken = false;
                    s.ensemble.on_step([&](std::string_view) {
                        if (is_taken || s.ensemble.exists(claim)) return;
                        is_taken = true;
                        s.ensemble.create(claim, "of another library");
                    });
                    co_await d.again();
                    co_await s.zk.idle();
                    s.ensemble.on_step(nullptr);
                    CHECK(is_taken);
                    CHECK(s.ensemble.data(claim) == "of another library");
                    const std::optional<std::string> none = co_await q.try_take();
                    CHECK_FALSE(none);
                    s.ensemble.remove(claim);
                    const std::string next = co_await q.take();
                    CHECK_FALSE(next.empty());
                });
            }
}

TEST_CASE("work_queue: after an operator has removed a claim, no end of the delivery touches the next claim") {
    for (const layout_case& l : layouts_with_claims())
        for (const bool is_large : {false, true})
            for (const std::string end : {"done", "reject", "again", "noticed", "noticed late"}) {
                INFO(l.name << (is_large ? ", large, " : ", ") << end);
                scene s;
                s.run([&]() -> asio::awaitable<void> {
                    const work_queue q = l.queue(s.zk);
                    co_await q.create();
                    const std::string item = put_foreign(s, l, is_large);
                    delivery d = co_await q.receive();
                    const std::string claim = l.claims + "/" + d.name();
                    if (end == "noticed late") s.ensemble.hold_down(s.zk);
                    s.ensemble.remove(claim);
                    s.ensemble.create(claim, "of another library");
                    if (end == "noticed late") s.ensemble.let_in(s.zk);
                    ended e;
                    if (end == "done") e = co_await end_of(d.done());
                    if (end == "reject") e = co_await end_of(d.reject("no"));
                    if (end == "again") co_await d.again();
                    if (end.starts_with("noticed")) {
                        const loss_reason why = co_await d.lost();
                        CHECK(why == loss_reason::node_deleted);
                    }
                    INFO(e.said);
                    if (end == "done" || (end == "reject" && !is_large)) CHECK(e.code == errc::lock_lost);
                    d = delivery();
                    co_await s.zk.idle();
                    CHECK(s.ensemble.exists(item));
                    CHECK(s.ensemble.data(claim) == "of another library");
                    s.ensemble.remove(claim);
                    const std::string next = co_await q.take();
                    CHECK_FALSE(next.empty());
                });
            }
}

// ---------------------------------------- nodes that may not be read, written

TEST_CASE("work_queue: an item that may not be read, or written, is left out with one warning, and tried again later") {
    for (const bool may_read : {false, true}) {
        INFO((may_read ? "may be read" : "may not be read"));
        scene s;
        client_options o = calm();
        const warnings told(o);
        const client logs = s.ensemble.client(o);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(logs, "/q"), theirs(s.zk, "/q");
            co_await q.create();
            co_await s.zk.add_auth("digest", "u:p");
            create_options own;
            acl theirs_alone = creator_all_acl();
            if (may_read) theirs_alone.push_back(acl_entry(permission::read, anyone()));
            own.mode(create_mode::persistent_sequential).acl(theirs_alone);
            co_await s.zk.create("/q/entries/entry-100-", "secret", own);
            co_await theirs.put("first");
            co_await s.zk.create("/q/entries/entry-100-", "secret", own);
            for (int i = 0; i < 4; ++i) co_await theirs.put(std::to_string(i));
            texts done;
            auto body = [&](delivery& d) -> asio::awaitable<void> {
                done.push_back(d.item());
                co_return;
            };
            const auto consume = [&]() -> asio::awaitable<void> {
                co_await q.consume(body, consume_options().parallel(2));
            };
            running consumer(s.ensemble.get_executor(), consume());
            co_await sleep(10s);
            std::sort(done.begin(), done.end());
            CHECK(done == texts{"0", "1", "2", "3", "first"});
            const std::optional<std::string> none = co_await q.try_take();
            CHECK_FALSE(none);
            const std::size_t before = s.ensemble.requests(logs);
            co_await sleep(10min);
            CHECK(s.ensemble.requests(logs) - before < 350);  // 240 of them reads of the idle session
            CHECK(told.with("/q has 2 items that are not handed out, the first of them: ") == 1);
            CHECK(told.with("/q") == 1);
            CHECK_FALSE(consumer.ended());
            for (const std::string& name : s.ensemble.children("/q/entries"))
                co_await s.zk.set_acl("/q/entries/" + name, open_acl());
            co_await sleep(2min);
            CHECK(std::count(done.begin(), done.end(), "secret") == 2);
            consumer.cancel();
            co_await consumer.end();
            co_await logs.close();
        });
    }
}

TEST_CASE("work_queue: an item with a delay that may not be read or moved is left out with one warning") {
    for (const char* refused : {"read", "create"}) {
        INFO(refused);
        scene s;
        client_options o = calm();
        const warnings told(o);
        const client logs = s.ensemble.client(o);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(logs, "/q"), theirs(s.zk, "/q");
            co_await theirs.put("late", put_options().delay(1s));
            co_await theirs.put("late, too", put_options().delay(2s));
            const std::string first = "/q/later/" + s.ensemble.children("/q/later").front();
            const bool reads = refused == std::string_view("read");
            if (reads) s.ensemble.refuse(first, zk_errc::no_auth);
            const auto take = [&]() -> asio::awaitable<std::string> { co_return co_await q.take(); };
            if (!reads) {
                // An operator's ACL: this consumer may take items, and not put any.
                const permission most = permission::read | permission::remove | permission::admin;
                for (int i = 0; i < 3; ++i) co_await theirs.put(std::to_string(i));
                co_await s.zk.set_acl("/q/entries", acl_of(acl_entry(most, anyone())));
                co_await sleep(3s);
                for (int i = 0; i < 3; ++i) {
                    const std::string got = co_await take();
                    CHECK(got == std::to_string(i));
                }
                const std::optional<std::string> none = co_await q.try_take();
                CHECK_FALSE(none);
                co_await s.zk.set_acl("/q/entries", open_acl());
                co_await sleep(2min);
            }
            std::string got = co_await take();
            CHECK(got == (reads ? "late, too" : "late"));
            CHECK(told.with(reads ? "an item with a delay that is not" : "2 items with a delay that are not") == 1);
            s.ensemble.accept(first);
            got = co_await take();
            CHECK(got == (reads ? "late" : "late, too"));
            co_await logs.close();
        });
    }
}

TEST_CASE("work_queue: of many items that may not be read, or moved, one warning tells, and they cost a read each",
          "[numbers]") {
    for (const std::size_t n : {10U, 100U, 1000U})
        for (const std::string kind : {"with a delay", "with a delay that may not be moved", "without"}) {
            INFO(n << " items, " << kind);
            scene s;
            client_options o = calm();
            const warnings told(o);
            const client logs = s.ensemble.client(o);
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(logs, "/q"), theirs(s.zk, "/q");
                const bool is_late = kind != "without", moves = kind != "with a delay that may not be moved";
                put_options how;
                if (is_late) how.delay(1s);
                co_await theirs.put_all(std::vector<std::string>(n, "x"), how);
                const std::string directory = is_late ? "/q/later" : "/q/entries";
                if (moves)
                    for (const std::string& name : s.ensemble.children(directory))
                        s.ensemble.refuse(directory + "/" + name, zk_errc::no_auth);
                const permission most = permission::read | permission::remove | permission::admin;
                if (!moves) co_await s.zk.set_acl("/q/entries", acl_of(acl_entry(most, anyone())));
                co_await sleep(3s);
                const std::size_t before = s.ensemble.requests(logs);
                const auto take = [&]() -> asio::awaitable<void> { co_await q.take(); };
                running taking(s.ensemble.get_executor(), take());
                co_await sleep(20s);
                CHECK(told.with("is not handed out") + told.with("are not handed out, the first of them: ") == 1);
                CHECK(told.with(std::to_string(n) + " items") == 1);
                CHECK(s.ensemble.requests(logs) - before <= n + n / 16 + 50);
                CHECK_FALSE(taking.ended());
                taking.cancel();
                co_await taking.end();
                co_await logs.close();
            });
        }
}

TEST_CASE("work_queue: a spent item stays when the dead items may not be written, and the others are handed out") {
    for (const auto why : {zk_errc::no_auth, zk_errc::quota_exceeded}) {
        scene s;
        client_options o = calm();
        const warnings told(o);
        const client logs = s.ensemble.client(o);
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(logs, "/q", work_queue_options().most_deliveries(2));
            co_await q.put("bad");
            for (int i = 0; i < 5; ++i) co_await q.put("job " + std::to_string(i));
            s.ensemble.refuse("/q/dead", why);
            int done = 0, failed = 0;
            auto body = [&](delivery& d) -> asio::awaitable<void> {
                if (d.item() == "bad" && ++failed) throw std::runtime_error("bad");
                ++done;
                co_return;
            };
            const auto consume = [&]() -> asio::awaitable<void> {
                co_await q.consume(body, consume_options().pause(10ms));
            };
            running consumer(s.ensemble.get_executor(), consume());
            co_await sleep(5min);
            CHECK_FALSE(consumer.ended());
            CHECK(done == 5);
            CHECK(failed == 2);
            CHECK(items(s.ensemble) == texts{"bad"});
            CHECK(told.with("is not handed out") == 1);
            s.ensemble.accept("/q/dead");
            co_await sleep(2min);
            consumer.cancel();
            co_await consumer.end();
            CHECK(items(s.ensemble).empty());
            const std::vector<dead_item> dead = co_await q.dead();
            REQUIRE(dead.size() == 1);
            CHECK(dead[0].item == "bad");
            co_await logs.close();
        });
    }
}

TEST_CASE("work_queue: where no claim or receipt may be written, take() fails, also when the first item is spent") {
    for (const char* directory : {"/q/taken", "/q/receipts"})
        for (const bool is_spent : {false, true}) {
            INFO(directory << (is_spent ? ", spent" : ""));
            scene s;
            s.run([&]() -> asio::awaitable<void> {
                const work_queue q(s.zk, "/q", work_queue_options().most_deliveries(is_spent ? 1 : 5));
                co_await q.put("job");
                {
                    delivery d = co_await q.receive();
                    co_await d.again();
                }
                co_await s.zk.idle();
                const permission most = permission::read | permission::remove | permission::admin;
                co_await s.zk.set_acl(directory, acl_of(acl_entry(most, anyone())));
                const client fresh = s.ensemble.client(calm());
                const work_queue theirs(fresh, "/q", work_queue_options().most_deliveries(is_spent ? 1 : 5));
                const auto take = [&]() -> asio::awaitable<void> { co_await theirs.take(); };
                running taker(s.ensemble.get_executor(), take());
                co_await sleep(5s);
                CHECK(taker.ended());
                CHECK(s.ensemble.requests(fresh) < 40);
                taker.cancel();
                const std::error_code why = co_await taker.code();
                CHECK(why == zk_errc::no_auth);
                CHECK(items(s.ensemble).size() == 1);
                co_await fresh.close();
            });
        }
}

TEST_CASE("work_queue: an operator is told of a queue in which one item may not be read") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        for (const char* item : {"a", "b"}) {
            co_await q.put(item);
            delivery d = co_await q.receive();
            co_await d.reject("no");
        }
        co_await q.put("c");
        co_await q.put("d");
        co_await sleep(10s);
        s.ensemble.refuse("/q/dead/" + s.ensemble.children("/q/dead").front(), zk_errc::no_auth);
        s.ensemble.refuse("/q/entries/" + s.ensemble.children("/q/entries").front(), zk_errc::no_auth);
        const std::vector<dead_item> dead = co_await q.dead();
        REQUIRE(dead.size() == 2);
        CHECK(dead[0].item.empty());
        CHECK(dead[0].reason.find("no permission") != std::string::npos);
        CHECK(dead[1].item == "b");
        CHECK(dead[1].reason == "no");
        const work_queue_info n = co_await q.info();
        CHECK(n.waiting == 2);
        REQUIRE(n.oldest);
        CHECK(*n.oldest >= 10s);
    });
}

// ---------------------------------------- bodies that fail fast

TEST_CASE("work_queue: of a process whose bodies fail at once, another process gets nearly all items") {
    for (const auto pause : {1s, 60s}) {
        scene s;
        const client healthy = s.ensemble.client(calm());
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q"), theirs(healthy, "/q");
            constexpr std::size_t n = 500;
            const texts many(n, "x");
            co_await q.put_all(many);
            std::size_t done = 0;
            int failures = 0;
            auto fails = [&](delivery&) -> asio::awaitable<void> {
                ++failures;
                throw std::runtime_error("the database is down");
                co_return;
            };
            auto works = [&](delivery&) -> asio::awaitable<void> {
                ++done;
                co_await sleep(10ms);
            };
            const auto how = consume_options().pause(pause);
            const auto fail = [&]() -> asio::awaitable<void> { co_await q.consume(fails, how); };
            const auto work = [&]() -> asio::awaitable<void> { co_await theirs.consume(works, how); };
            running first(s.ensemble.get_executor(), fail());
            co_await sleep(20s);
            CHECK(s.ensemble.children("/q/taken").size() <= 33);
            running second(s.ensemble.get_executor(), work());
            co_await sleep(10s);
            CHECK(done >= n - 40);
            CHECK_FALSE(first.ended());
            co_await sleep(30min);
            CHECK(done == n);
            CHECK(items(s.ensemble).empty());
            first.cancel();
            second.cancel();
            co_await first.end();
            co_await second.end();
            co_await healthy.close();
        });
    }
}

TEST_CASE("work_queue: items that fail do not hold up the others, however many there are") {
    scene s;
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const texts bad(100, "bad"), good(100, "good");
        co_await q.put_all(bad);
        co_await q.put_all(good);
        int done = 0;
        std::map<std::string, std::vector<std::chrono::nanoseconds>> failed;
        auto body = [&](delivery& d) -> asio::awaitable<void> {
            if (d.item() == "bad") {
                failed[d.name()].push_back(s.ensemble.now());
                throw std::runtime_error("bad");
            }
            ++done;
            co_return;
        };
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(body); };
        running consumer(s.ensemble.get_executor(), consume());
        co_await sleep(3min);
        CHECK(done == 100);
        CHECK(failed.size() == 100);
        // This process is not given an item before the item's pause is over.
        for (const auto& [name, times] : failed)
            for (std::size_t i = 1; i < times.size(); ++i)
                CHECK(times[i] - times[i - 1] >= std::min<std::chrono::nanoseconds>(1s * (1 << (i - 1)), 1min));
        CHECK_FALSE(consumer.ended());
        consumer.cancel();
        co_await consumer.end();
        co_await sleep(2min);  // the claims of the items that rest
    });
}

TEST_CASE("work_queue: an outage of what the bodies need spends few deliveries") {
    // Six processes, 1000 items of six deliveries, which with pauses of a second, two, and so on last for 31 s.
    scene s;
    std::vector<client> all{s.zk};
    for (int i = 0; i < 5; ++i) all.push_back(s.ensemble.client(calm()));
    s.run([&]() -> asio::awaitable<void> {
        const auto how = work_queue_options().most_deliveries(6);
        const work_queue q(s.zk, "/q", how);
        const texts many(1000, "x");
        co_await q.put_all(many);
        bool is_down = true;
        int done = 0;
        auto body = [&](delivery&) -> asio::awaitable<void> {
            if (is_down) throw std::runtime_error("the database is down");
            ++done;
            co_return;
        };
        auto consume = [&](client zk) -> asio::awaitable<void> {
            const work_queue from(zk, "/q", how);
            co_await from.consume(body);
        };
        std::vector<running> consumers;
        for (const client& zk : all) consumers.emplace_back(s.ensemble.get_executor(), consume(zk));
        co_await sleep(10s);
        is_down = false;
        co_await sleep(3min);
        const std::size_t dead = s.ensemble.children("/q/dead").size();
        CAPTURE(dead, done);
        CHECK(dead < 300);
        CHECK(dead + static_cast<std::size_t>(done) == 1000);
        for (running& r : consumers) r.cancel();
        for (running& r : consumers) co_await r.end();
        for (std::size_t i = 1; i < all.size(); ++i) co_await all[i].close();
    });
}

TEST_CASE("work_queue: of deliveries that are given back with a pause, 32 stay claimed") {
    scene s;
    const client other = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q"), theirs(other, "/q");
        const texts many(100, "x");
        co_await q.put_all(many);
        for (int i = 0; i < 100; ++i) {
            delivery d = co_await q.receive();
            CHECK(d.attempt() == 1);
            co_await d.again(30min);
        }
        co_await s.zk.idle();
        CHECK(s.ensemble.children("/q/taken").size() == 32);
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        for (int i = 0; i < 68; ++i) {
            const std::optional<std::string> got = co_await theirs.try_take();
            CHECK(got);
        }
        co_await other.close();
        const auto begin = s.ensemble.now();
        for (int i = 0; i < 32; ++i) co_await q.take();
        CHECK(s.ensemble.now() - begin > 29min);
        CHECK(s.ensemble.now() - begin < 31min);
    });
}

// ---------------------------------------- processes that wait, hang, or fall silent

TEST_CASE("work_queue: of processes that wait for items that come one by one, each gets its share") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        INFO("seed " << seed);
        scene s(seed);
        s.ensemble.lag(seed == 3);
        std::vector<client> all{s.zk};
        for (int i = 0; i < 4; ++i) all.push_back(s.ensemble.client(calm()));
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q(s.zk, "/q");
            co_await q.create();
            std::vector<int> got(all.size());
            auto consume = [&](std::size_t i) -> asio::awaitable<void> {
                const work_queue from(all[i], "/q");
                auto body = [&](delivery&) -> asio::awaitable<void> {
                    ++got[i];
                    co_return;
                };
                co_await from.consume(body);
            };
            std::vector<running> consumers;
            for (std::size_t i = 0; i < all.size(); ++i) consumers.emplace_back(s.ensemble.get_executor(), consume(i));
            co_await sleep(1s);
            constexpr int n = 250;
            for (int i = 0; i < n; ++i) {
                co_await q.put("x");
                co_await sleep(50ms);
            }
            co_await sleep(2s);
            int sum = 0;
            for (const int g : got) {
                CHECK(g >= n / 5 / 3);
                sum += g;
            }
            CHECK(sum == n);
            for (running& r : consumers) r.cancel();
            for (running& r : consumers) co_await r.end();
            for (std::size_t i = 1; i < all.size(); ++i) co_await all[i].close();
        });
    }
}

TEST_CASE("work_queue: a process that hangs, or falls silent, holds up the items that it has claimed, and no others") {
    scene s;
    const client hung = s.ensemble.client(calm()), silent = s.ensemble.client(calm());
    s.run([&]() -> asio::awaitable<void> {
        const work_queue q(s.zk, "/q");
        const texts many(60, "x");
        std::size_t done = 0, begun = 0;
        auto works = [&](delivery&) -> asio::awaitable<void> {
            ++done;
            co_return;
        };
        auto hangs = [&](delivery&) -> asio::awaitable<void> {
            ++begun;
            co_await sleep(10min);
        };
        auto consume_badly = [&](client zk) -> asio::awaitable<void> {
            const work_queue from(zk, "/q");
            co_await from.consume(hangs, consume_options().parallel(2));
        };
        running first(s.ensemble.get_executor(), consume_badly(hung));
        running second(s.ensemble.get_executor(), consume_badly(silent));
        co_await sleep(1s);
        co_await q.put_all(many);
        while (begun < 4) co_await sleep(1ms);
        s.ensemble.silence(silent);
        const auto consume = [&]() -> asio::awaitable<void> { co_await q.consume(works); };
        running healthy(s.ensemble.get_executor(), consume());
        co_await sleep(5s);
        CHECK(done == 56);
        co_await sleep(20s);  // the session of the silent process
        CHECK(done == 58);
        first.cancel();
        co_await first.end();
        co_await sleep(1s);
        CHECK(done == 60);
        s.ensemble.let_in(silent);
        second.cancel();
        co_await second.end();
        healthy.cancel();
        co_await healthy.end();
        co_await hung.close();
        co_await silent.close();
    });
}

// ---------------------------------------- names of dead items

TEST_CASE("work_queue: revive() refuses a name that no dead item can have") {
    for (const layout_case& l : all_layouts()) {
        INFO(l.name);
        scene s;
        s.run([&]() -> asio::awaitable<void> {
            const work_queue q = l.queue(s.zk);
            co_await q.put("job", l.how());
            {
                delivery d = co_await q.receive();
                co_await d.reject("no such street");
            }
            const std::vector<dead_item> dead = co_await q.dead();
            REQUIRE(dead.size() == 1);
            const std::string name = dead.front().name, item = name.substr(0, name.rfind('.'));
            for (const std::string& wrong :
                 {name + "/reason", name + "/", item, item + ".", item + ".x", item + "./1", item + ".-1", name + " ",
                  item + ".1/../" + name, std::string("."), std::string()}) {
                INFO(wrong);
                const ended e = co_await end_of(q.revive(wrong));
                CHECK(e.code == errc::invalid_argument);
            }
            CHECK(s.ensemble.children(l.items).empty());
            const std::vector<dead_item> still = co_await q.dead();
            REQUIRE(still.size() == 1);
            CHECK(still.front().reason == "no such street");
            const bool revived = co_await q.revive(name);
            CHECK(revived);
        });
    }
}

}  // namespace work_queue_partners_tests
