// What is brought to a client_observer, in which order, and what becomes of what it is too slow for.

#include "support/catch.hpp"

#include <zkasio/detail/telemetry/statistics.hpp>
#include <zkasio/detail/telemetry/telemetry.hpp>

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_untold = 65'536;

// "5" for a lock wait with that token, "-3" for three that were dropped.
class order_of_reports final : public client_observer {
public:
    void lock_wait(const lock_wait_report& r) override { told.push_back(std::to_string(r.token)); }
    void dropped(std::size_t n) override { told.push_back("-" + std::to_string(n)); }
    std::vector<std::string> told;
};

// A feed, the loop that its strand lives on, and the one of its observer.
struct feed_rig {
    void add(std::size_t how_many) {
        for (std::size_t i = 0; i < how_many; ++i) {
            lock_wait_report r;
            r.token = ++last;
            feed->add(r);
        }
    }
    // Until nothing is under way in the client any more.
    void run_client() {
        client.restart();
        client.run();
    }
    void look() {
        observers.restart();
        observers.poll();
    }
    std::vector<std::string> told_behind(std::size_t n) const {
        return {seen->told.begin() + static_cast<std::ptrdiff_t>(n), seen->told.end()};
    }

    asio::io_context client, observers;
    strand_type strand{asio::any_io_executor(client.get_executor())};
    const std::shared_ptr<order_of_reports> seen = std::make_shared<order_of_reports>();
    counter dropped;
    std::shared_ptr<report_feed> feed =
        std::make_shared<report_feed>(strand, seen, observers.get_executor(), dropped);
    std::int64_t last = 0;
};

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("report_feed: what was dropped is told where it is missing") {
    feed_rig r;
    r.add(most_untold + 3);
    r.look();
    REQUIRE(r.seen->told.size() == most_untold);
    r.add(2);
    r.run_client();
    r.look();
    CHECK(r.told_behind(most_untold) == words{"-3", "65540", "65541"});
    CHECK(r.dropped.get() == 3);
}

TEST_CASE("report_feed: what waits is limited in bytes, too, for paths may be long") {
    feed_rig r;
    constexpr std::size_t all = 1000;
    for (std::size_t i = 0; i < all; ++i) {
        lock_wait_report wait;
        wait.token = ++r.last;
        wait.path.assign(100'000, 'x');
        r.feed->add(std::move(wait));
    }
    CHECK(r.dropped.get() > 600);
    CHECK(r.dropped.get() < 700);
    r.look();
    CHECK(r.seen->told.size() + r.dropped.get() == all);
    r.run_client();
    r.look();
    REQUIRE(r.seen->told.size() + r.dropped.get() == all + 1);
    CHECK(r.seen->told.back() == "-" + std::to_string(r.dropped.get()));
    r.add(1);
    r.run_client();
    r.look();
    CHECK(r.seen->told.back() == "1001");
}

TEST_CASE("report_feed: what was dropped is told, too, when nothing else happens") {
    feed_rig r;
    r.add(most_untold);
    r.run_client();
    for (int i = 0; i < 3; ++i) {
        r.add(1);
        r.client.restart();
        r.client.run_one_for(10s);  // it goes on while nobody looks, and sends no more
    }
    CHECK(r.seen->told.empty());
    r.look();
    r.run_client();
    r.look();
    CHECK(r.told_behind(most_untold) == words{"-3"});
}

TEST_CASE("report_feed: a batch is full with a thousand, and told without waiting for more") {
    feed_rig r;
    r.add(999);
    r.look();
    CHECK(r.seen->told.empty());
    r.add(1);
    r.look();
    CHECK(r.seen->told.size() == 1000);
    r.add(1);
    r.look();
    CHECK(r.seen->told.size() == 1000);
    r.run_client();
    r.look();
    CHECK(r.seen->told.size() == 1001);
}

TEST_CASE("report_feed: once the client has closed, what happens is told at once, for its loop may run no more") {
    feed_rig r;
    r.add(1);
    r.look();
    CHECK(r.seen->told.empty());
    r.feed->finish();
    r.add(1);
    r.feed.reset();
    r.look();
    CHECK(r.seen->told == words{"1", "2"});
}

TEST_CASE("report_feed: an observer that throws is told what follows, and its reports are done with") {
    // Throws at each report, and at each gap.
    class thrower final : public client_observer {
    public:
        void lock_wait(const lock_wait_report& r) override {
            last = r.token;
            throw std::runtime_error("not this one");
        }
        void dropped(std::size_t n) override {
            lost += n;
            throw std::runtime_error("nor this one");
        }
        std::int64_t last = 0;
        std::size_t lost = 0;
    };
    feed_rig r;
    const auto seen = std::make_shared<thrower>();
    r.feed = std::make_shared<report_feed>(r.strand, seen, r.observers.get_executor(), r.dropped);
    r.add(most_untold + 5);
    r.look();
    CHECK(seen->last == most_untold);
    r.add(1000);
    r.run_client();
    r.look();
    CHECK(seen->lost == 5);
    CHECK(seen->last == most_untold + 5 + 1000);
    r.add(most_untold);  // there is room for as many again
    r.feed->hand_over();
    r.look();
    CHECK(r.dropped.get() == 5);
}

TEST_CASE("report_feed: on an executor of several threads, reports come one at a time and in their order") {
    class one_at_a_time final : public client_observer {
    public:
        void lock_wait(const lock_wait_report& r) override {
            if (inside.exchange(true)) together = true;
            if (r.token != last + 1) out_of_order = true;
            last = r.token;
            std::this_thread::yield();
            inside = false;
        }
        std::atomic<bool> inside{false}, together{false}, out_of_order{false};
        std::atomic<std::int64_t> last{0};
    };
    asio::thread_pool threads(4);
    const auto seen = std::make_shared<one_at_a_time>();
    feed_rig r;
    r.feed = std::make_shared<report_feed>(r.strand, seen, threads.get_executor(), r.dropped);
    for (int i = 0; i < 2000; ++i) {
        r.add(5);
        r.feed->hand_over();
    }
    threads.join();
    CHECK(seen->last == 10'000);
    CHECK_FALSE(seen->together);
    CHECK_FALSE(seen->out_of_order);
}

TEST_CASE("report_feed: one that is destroyed tells no more, and its timer does no harm") {
    feed_rig r;
    r.add(1);
    r.feed.reset();
    r.run_client();
    r.look();
    CHECK(r.seen->told.empty());
}

