#include "worker.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace soak {
namespace {

using namespace std::chrono_literals;

zkasio::acquire_options how(worker& w) {
    zkasio::acquire_options options;
    if (w.one_in(2)) options.survive_expiry();
    return options;
}

// One round. `acquire` completes with nothing when it has given up.
using acquire_function = std::function<awaitable<std::optional<zkasio::lock_guard>>()>;
awaitable<void> take_turn(worker& w, std::string lock, std::string kind, acquire_function acquire) {
    round mine(w, std::move(lock), std::move(kind));
    std::optional<zkasio::lock_guard> guard;
    try {
        guard = co_await acquire();
        if (!guard) mine.failed();
    } catch (const std::exception&) {
        mine.failed();
    }
    if (!guard) co_return;
    mine.granted(*guard);
    co_await mine.hold(*guard, 15ms);
    mine.releasing();
    if (w.one_in(3)) co_return;  // released by the destructor
    try {
        co_await guard->release();
        mine.released();
    } catch (const std::exception&) {
    }
}

awaitable<std::optional<zkasio::lock_guard>> acquire(worker& w, std::shared_ptr<const zkasio::lockable> lock) {
    std::optional<zkasio::lock_guard> guard;
    switch (w.random() % 8) {
        case 0: guard = co_await lock->try_acquire(how(w)); break;
        case 1: guard = co_await lock->try_acquire_for(w.about(1s), how(w)); break;
        default: guard.emplace(co_await lock->acquire(how(w)));
    }
    co_return guard;
}

awaitable<void> use(worker& w, std::string name, std::string kind, std::shared_ptr<const zkasio::lockable> lock) {
    const acquire_function get = [&w, lock] { return acquire(w, lock); };
    while (!w.stopping) {
        co_await w.think(1s);
        co_await take_turn(w, name, kind, get);
    }
}

template <class Lock>
std::shared_ptr<const zkasio::lockable> shared(Lock lock) {
    return std::make_shared<const Lock>(std::move(lock));
}

// A body that is cancelled when the lock is lost, or, with a margin, before. Some do not look at the lock while they
// hold it, and those with a margin hold it for as long as most faults last.
awaitable<void> use_with_lock(worker& w, std::string name, std::chrono::milliseconds margin) {
    const zkasio::mutex lock(w.zk, root + "/" + name);
    while (!w.stopping) {
        co_await w.think(1s);
        round mine(w, name, "x");
        bool began = false;
        auto body = [&](zkasio::lock_guard& guard) -> awaitable<void> {
            struct until_end {
                round& of;
                bool complete = false;
                ~until_end() {
                    if (!complete) of.cancelled();
                }
            } end{mine};
            began = true;
            mine.granted(guard);
            if (margin > 0ms) mine.has_margin(margin);
            if (margin > 0ms) co_await w.pause(w.about(2s));
            else if (w.one_in(10)) co_await w.pause(w.about(1s));
            else co_await mine.hold(guard, 15ms);
            mine.releasing();
            end.complete = true;
        };
        try {
            co_await lock.with_lock(body, zkasio::with_lock_options().stop_margin(margin));
            mine.released();
        } catch (const std::exception&) {
            if (!began) mine.failed();
        }
    }
}

awaitable<void> read_and_write(worker& w, std::string name) {
    const zkasio::shared_mutex lock(w.zk, root + "/" + name);
    const auto readers = shared(lock.readers()), writers = shared(lock.as(zkasio::lock_kind::exclusive));
    while (!w.stopping) {
        co_await w.think(1s);
        if (!w.one_in(10)) {
            const bool reads = !w.one_in(4);
            const acquire_function get = [&w, side = reads ? readers : writers] { return acquire(w, side); };
            co_await take_turn(w, name, reads ? "r" : "x", get);
            continue;
        }
        round mine(w, name, "x");
        bool began = false;
        try {
            zkasio::lock_guard writing = co_await lock.acquire(how(w));
            began = true;
            mine.granted(writing);
            co_await mine.hold(writing, 15ms);
            mine.becomes_reader(nullptr);
            began = false;
            zkasio::lock_guard reading = co_await lock.downgrade(std::move(writing));
            began = true;
            mine.becomes_reader(&reading);
            co_await mine.hold(reading, 15ms);
            mine.releasing();
            co_await reading.release();
            mine.released();
        } catch (const std::exception&) {
            if (!began) mine.failed();
        }
    }
}

awaitable<void> take_permits(worker& w, std::string name) {
    const zkasio::semaphore permits(w.zk, root + "/" + name, zkasio::permits::fixed(3));
    while (!w.stopping) {
        co_await w.think(1s);
        const int n = 1 + static_cast<int>(w.random() % 2);
        const acquire_function get = [&w, request = shared(permits.request(n))] { return acquire(w, request); };
        co_await take_turn(w, name, std::to_string(n), get);
    }
}

// Two of three, at random, or one alone.
awaitable<void> take_several(worker& w) {
    while (!w.stopping) {
        co_await w.think(1s);
        const int leave_out = static_cast<int>(w.random() % 4);
        zkasio::multi_mutex all(w.zk);
        std::string names;
        for (int i = 0; i < (leave_out == 3 ? 1 : 3); ++i) {
            if (i == leave_out) continue;
            const std::string name = "multi-" + std::to_string(i);
            all.add(zkasio::mutex(w.zk, root + "/" + name));
            names += (names.empty() ? "" : ",") + name;
        }
        const acquire_function get = [&w, lock = shared(all)] { return acquire(w, lock); };
        co_await take_turn(w, names, "x", get);
    }
}

}  // namespace

void start_locks(worker& w) {
    w.start(use(w, "mutex-0", "x", shared(zkasio::mutex(w.zk, root + "/mutex-0"))));
    w.start(use(w, "mutex-1", "x", shared(zkasio::mutex(w.zk, root + "/mutex-1"))));
    w.start(use_with_lock(w, "mutex-1", 0ms));
    w.start(use_with_lock(w, "margin", 500ms));
    for (int i = 0; i < 2; ++i) w.start(read_and_write(w, "shared"));
    w.start(take_permits(w, "semaphore"));
    for (int i = 0; i < 3; ++i) w.start(use(w, "cohort", "x", shared(zkasio::cohort_mutex(w.zk, root + "/cohort"))));
    w.start(use(w, "cohort", "x", shared(zkasio::mutex(w.zk, root + "/cohort"))));
    w.start(take_several(w));
    w.start(use(w, "unfair", "x", shared(zkasio::unfair_mutex(w.zk, root + "/unfair"))));
    w.start(use(w, "slots", "slot", shared(zkasio::slots(w.zk, root + "/slots", 3))));
}

}  // namespace soak
