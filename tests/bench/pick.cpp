// zkasio_bench_pick 127.0.0.1:2181: what a pick costs, by strategy, number of instances, and threads; beside a
// round robin under a std::mutex, as one would write it.
#include "figure.hpp"

#include <zkasio/discovery/provider.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace zkasio;

namespace {

constexpr int picks = 2'000'000;

template <class Pick>
double nanoseconds(int threads, int n, Pick pick) {
    std::atomic<int> ready{0};
    const auto work = [&] {
        for (++ready; ready < threads;) {
        }
        for (int i = 0; i < n; ++i) pick();
    };
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return time.count() / n;
}

// What one would write without much thought.
struct under_mutex {
    std::shared_ptr<const service_instance> next() {
        const std::lock_guard lock(mutex);
        return all[turn++ % all.size()];
    }
    std::mutex mutex;
    std::vector<std::shared_ptr<const service_instance>> all;
    std::size_t turn = 0;
};

void print(const char* what, int instances, double one, double two) {
    std::printf("%-20s %5d instances  %7.1f ns  two threads %7.1f ns\n", what, instances, one, two);
    bench::figure(std::string(what) + " | " + std::to_string(instances) + " | ns", one);
    bench::figure(std::string(what) + " | " + std::to_string(instances) + " | ns, two threads", two);
}

asio::awaitable<void> measure(client zk, std::string dir, int instances, const char* what, pick_strategy strategy) {
    const provider service(zk, dir, "s", provider_options().strategy(std::move(strategy)));
    co_await service.ready();
    const auto pick = [&] { (void)service.try_pick()->port(); };
    const int n = instances > 100 ? picks / 20 : picks;
    print(what, instances, nanoseconds(1, n, pick), nanoseconds(2, n, pick));
    co_await service.close();
}

asio::awaitable<void> measure_others(client zk, std::string dir, int instances) {
    const provider service(zk, dir, "s");
    co_await service.ready();
    const int n = instances > 100 ? picks / 20 : picks;
    const auto for_key = [&] { (void)service.try_pick_for("customer-4711")->port(); };
    print("for a key", instances, nanoseconds(1, n, for_key), nanoseconds(2, n, for_key));

    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < picks; ++i) {
        const picked p = co_await service.pick();
        (void)p->port();
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    std::printf("%-20s %5d instances  %7.1f ns\n", "co_await pick()", instances, time.count() / picks);

    under_mutex naive;
    for (const service_instance& is : service.view().instances())
        naive.all.push_back(std::make_shared<const service_instance>(is));
    const auto locked = [&] { (void)naive.next()->port(); };
    print("(std::mutex)", instances, nanoseconds(1, picks, locked), nanoseconds(2, picks, locked));
    co_await service.close();
}

asio::awaitable<void> run(client zk) {
    create_options parents;
    parents.parents(missing_parents::create_persistent);
    for (const int instances : {10, 1000}) {
        const std::string dir = "/bench-pick-" + std::to_string(instances);
        for (int i = 0; i < instances; ++i) {
            service_instance is("s");
            is.id(std::to_string(i)).port(static_cast<std::uint16_t>(i));
            co_await zk.create_or_set(dir + "/s/" + is.id(), is.to_json(), parents);
        }
        co_await measure(zk, dir, instances, "round robin", pick_strategy::round_robin());
        co_await measure(zk, dir, instances, "random", pick_strategy::random());
        co_await measure(zk, dir, instances, "least outstanding", pick_strategy::least_outstanding());
        co_await measure(zk, dir, instances, "sticky", pick_strategy::sticky());
        pick_strategy weighted = pick_strategy::weighted([](const service_instance& is) { return *is.port() + 1.0; });
        co_await measure(zk, dir, instances, "weighted", weighted);
        co_await measure_others(zk, dir, instances);
        co_await zk.remove_recursive(dir);
    }
    co_await zk.close();
}

}  // namespace

int main(int argc, char** argv) {
    asio::io_context io;
    const client zk(io, client_options(argc > 1 ? argv[1] : "127.0.0.1:2181"));
    asio::co_spawn(io, run(zk), [](std::exception_ptr failed) {
        if (failed) std::rethrow_exception(failed);
    });
    io.run();
}
