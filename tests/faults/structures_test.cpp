// Queues, counters and transactions while connections are cut, sessions expire and the server is started again: nothing
// is lost, and nothing counts twice.

#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/transact/transact.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

client_options lasting(const std::string& servers) {
    return options(servers).session_timeout(paced(40s)).retry(retry_policy::forever());
}

// Cuts all connections again and again, as the work goes on: so often in all, however fast the machine is.
class cutter {
public:
    cutter(fault_proxy& proxy, std::size_t cuts, std::size_t work) : proxy_(proxy), cuts_(cuts), work_(work) {}

    /// One more piece of the work is done.
    void did() {
        ++done_;
        if (made_ >= cuts_ || done_ * cuts_ < (made_ + 1) * work_) return;
        proxy_.cut_all(made_++ % 2 ? fault_proxy::end::rst : fault_proxy::end::fin);
    }
    std::size_t done() const noexcept { return done_; }
    std::size_t made() const noexcept { return made_; }

private:
    fault_proxy& proxy_;
    const std::size_t cuts_, work_;
    std::size_t done_ = 0, made_ = 0;
};

asio::awaitable<void> all_of(const std::vector<running>& tasks) {
    std::exception_ptr failed;
    for (const running& t : tasks) {
        const std::exception_ptr e = co_await t.end();
        if (e) failed = e;
    }
    if (failed) std::rethrow_exception(failed);
}

}  // namespace

TEST_CASE("work_queue: 200 cuts and a server that is started again, nothing is lost and nothing is done twice",
          "[clear]") {
    constexpr std::size_t producers = 4, each = 100, consumers = 8, items = producers * each;
    test_server server;
    fault_proxy proxy(server.endpoint());
    test_loop loop(200s);
    const test_client a(loop.executor(), lasting(proxy.address())), b(loop.executor(), lasting(proxy.address())),
        c(loop.executor(), lasting(proxy.address()));
    cutter cuts(proxy, 200, 2 * items);
    std::map<std::string, int> done;
    std::size_t given = 0;
    bool restarted = false;
    const auto step = [&] {
        cuts.did();
        if (restarted || cuts.done() < items) return;
        restarted = true;
        server.kill();
        server.start();
    };
    auto produce = [&](client zk, std::size_t me) -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        for (std::size_t i = 0; i < each; ++i) {
            co_await q.put(std::to_string(me) + "." + std::to_string(i));
            step();
        }
    };
    auto consume = [&](client zk, std::size_t me) -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        while (given < items) {
            ++given;  // of the items that are left for this consumer and the others
            if (me % 2 == 0) {
                const std::string item = co_await q.take();
                ++done[item];
            } else {
                delivery d = co_await q.receive();
                co_await d.done();
                ++done[d.item()];
            }
            step();
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        std::vector<running> tasks;
        for (std::size_t i = 0; i < producers; ++i) tasks.emplace_back(executor, produce(a, i));
        for (std::size_t i = 0; i < consumers; ++i) tasks.emplace_back(executor, consume(i % 4 < 2 ? b : c, i));
        co_await all_of(tasks);
        const work_queue_info left = co_await work_queue(a, "/q").info();
        CHECK(left.waiting + left.claimed == 0);
        for (const client& zk : {client(a), client(b), client(c)}) {
            co_await zk.idle();
            CHECK(zk.stats().deliveries.held == 0);
        }
        co_await a.close();
        co_await b.close();
        co_await c.close();
    };
    loop.run(body());
    CHECK(cuts.made() == 200);
    CHECK(restarted);
    CHECK(done.size() == items);
    std::size_t twice = 0;
    for (const auto& [item, n] : done) twice += n != 1;
    CHECK(twice == 0);
}

TEST_CASE("atomic_counter: 1000 coroutines of ten clients over 200 cuts, and the sum is exact", "[clear]") {
    constexpr std::size_t clients = 10, coroutines = 100;
    constexpr int each = 10;
    fault_proxy proxy(first_server());
    test_loop loop(200s);
    std::deque<test_client> all;
    for (std::size_t i = 0; i < clients; ++i) all.emplace_back(loop.executor(), lasting(proxy.address()));
    cutter cuts(proxy, 200, clients * coroutines * each);
    std::string path;
    auto add = [&](client zk) -> asio::awaitable<void> {
        const atomic_counter n(zk, path, counter_options().promote_to(path + "-turns"));
        std::int64_t last = 0;
        for (int i = 0; i < each; ++i) {
            const std::int64_t now = co_await n.add(1);
            CHECK(now > last);
            last = now;
            cuts.did();
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::string directory = co_await fresh_directory(all.front(), "sum-under-cuts");
        path = directory + "/n";
        std::vector<running> tasks;
        const auto executor = co_await asio::this_coro::executor;
        for (std::size_t i = 0; i < clients * coroutines; ++i) tasks.emplace_back(executor, add(all[i % clients]));
        co_await all_of(tasks);
        const atomic_counter counter(all.front(), path);
        co_await all.front().sync(path);
        const std::int64_t sum = co_await counter.get();
        CHECK(sum == static_cast<std::int64_t>(clients * coroutines) * each);
        for (const test_client& zk : all) co_await zk.close();
    };
    loop.run(body());
    CHECK(cuts.made() == 200);
}

TEST_CASE("transact: eight clients transfer between 20 accounts over cuts and expiries, and the sum never changes",
          "[clear]") {
    constexpr std::size_t clients = 8, accounts = 20, transfers = 40;
    constexpr int each = 100, total = each * static_cast<int>(accounts);
    fault_proxy proxy(first_server());
    test_loop loop(200s);
    std::deque<test_client> all;
    for (std::size_t i = 0; i < clients; ++i) all.emplace_back(loop.executor(), lasting(proxy.address()));
    const test_client auditor(loop.executor(), lasting(first_server()));
    cutter cuts(proxy, 100, clients * transfers);
    std::string bank, receipts;
    std::size_t unknown = 0, expired = 0, audits = 0;
    bool over = false;
    const auto account = [&](std::size_t n) { return bank + "/" + std::to_string(n); };
    const auto money_in = [](const std::optional<node_data>& n) { return n ? std::stoi(n->data) : 0; };
    auto transfer = [&](std::size_t me) -> asio::awaitable<void> {
        const client zk = all[me];
        std::minstd_rand random(static_cast<unsigned>(me + 1));
        for (std::size_t i = 0; i < transfers; ++i) {
            const std::string from = account(random() % accounts), to = account(random() % accounts);
            const int amount = static_cast<int>(random() % 50);
            if (from == to) {
                cuts.did();
                continue;
            }
            const auto body = [&](unit& u) -> asio::awaitable<bool> {
                const std::optional<node_data> a = co_await u.get(from);
                const std::optional<node_data> b = co_await u.get(to);
                if (money_in(a) < amount) co_return false;
                u.set(from, std::to_string(money_in(a) - amount));
                u.set(to, std::to_string(money_in(b) + amount));
                co_return true;
            };
            try {
                co_await transact(zk, body, transact_options().receipts(receipts));
            } catch (const error& e) {
                if (e.code() != errc::session_expired || !e.outcome_unknown()) throw;
                ++unknown;
            }
            cuts.did();
            if (cuts.done() % 40 == 0) {
                const std::error_code failed = co_await code_of(expire_session(zk));
                expired += failed ? 0 : 1;
            }
        }
    };
    auto audit = [&]() -> asio::awaitable<void> {
        std::vector<std::string> paths;
        for (std::size_t n = 0; n < accounts; ++n) paths.push_back(account(n));
        while (!over) {
            int sum = 0;
            const auto body = [&](unit& u) -> asio::awaitable<void> {
                const std::vector<std::optional<node_data>> now = co_await u.get_all(paths);
                sum = 0;
                for (const std::optional<node_data>& n : now) sum += money_in(n);
            };
            co_await transact(auditor, body);
            CHECK(sum == total);
            ++audits;
        }
    };
    auto body = [&]() -> asio::awaitable<void> {
        const std::string directory = co_await fresh_directory(auditor, "bank-under-cuts");
        bank = directory + "/accounts";
        receipts = directory + "/receipts";
        co_await auditor.create(bank);
        for (std::size_t n = 0; n < accounts; ++n) co_await auditor.create(account(n), std::to_string(each));
        std::vector<running> tasks;
        const auto executor = co_await asio::this_coro::executor;
        const running auditing(executor, audit());
        for (std::size_t i = 0; i < clients; ++i) tasks.emplace_back(executor, transfer(i));
        co_await all_of(tasks);
        over = true;
        std::vector<running> last(1, auditing);
        co_await all_of(last);
        for (const test_client& zk : all) co_await zk.close();
        co_await auditor.close();
    };
    loop.run(body());
    CHECK(cuts.made() == 100);
    CHECK(expired > 0);
    CHECK(audits > 0);
    WARN(audits << " audits, " << expired << " sessions ended, " << unknown << " transfers of unknown outcome");
}
