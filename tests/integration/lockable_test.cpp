#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using any_lock = std::shared_ptr<const lockable>;

template <class Lock>
any_lock boxed(Lock lock) {
    return std::make_shared<const Lock>(std::move(lock));
}

// A kind of lock of somebody's own: it says how one attempt is made, and has the rest.
class own_kind final : public lockable {
public:
    own_kind(client zk, std::string where) : lockable(zk, where), inner_(std::move(zk), std::move(where)) {}

protected:
    lock_attempt attempts(acquire_options how) const override {
        return [inner = inner_, how = std::move(how)](if_contended when_contended) {
            return attempt(inner, how, when_contended);
        };
    }

private:
    static asio::awaitable<std::optional<lock_guard>> attempt(mutex inner, acquire_options how,
                                                              if_contended when_contended) {
        if (when_contended == if_contended::give_up) co_return co_await inner.try_acquire(how);
        std::optional<lock_guard> guard(co_await inner.acquire(how));
        co_return guard;
    }
    mutex inner_;
};

// One of each kind. Of two for the same directory at most one is to be had.
std::vector<any_lock> one_of_each(const client& zk, const std::string& dir) {
    const shared_mutex rw(zk, dir + "/rw"), read(zk, dir + "/read");
    multi_mutex both(zk), mixed(zk), shared_ptrs(zk);
    both.add(mutex(zk, dir + "/b1")).add(mutex(zk, dir + "/b2"), acquire_options());
    mixed.add(mutex(zk, dir + "/m1"))
        .add(semaphore(zk, dir + "/m2", permits::fixed(1)), 1)
        .add(own_kind(zk, dir + "/m3"));
    mixed.add(rw.as(lock_kind::exclusive)).add(shared_mutex(zk, dir + "/m4"), lock_kind::shared).add_shared(read);
    shared_ptrs.add(boxed(mutex(zk, dir + "/p1"))).add(std::make_shared<mutex>(zk, dir + "/p2"), acquire_options());
    CHECK_THROWS_AS(shared_ptrs.add(any_lock()), error);
    std::vector<any_lock> all;
    all.push_back(boxed(shared_ptrs));
    all.push_back(boxed(mutex(zk, dir + "/mutex")));
    all.push_back(boxed(unfair_mutex(zk, dir + "/flag")));
    all.push_back(boxed(own_kind(zk, dir + "/own")));
    all.push_back(boxed(rw));
    all.push_back(boxed(read.as(lock_kind::exclusive)));
    all.push_back(boxed(both));
    all.push_back(boxed(mixed));
    all.push_back(boxed(semaphore(zk, dir + "/permits", permits::fixed(3)).request(2)));
    return all;
}

// As a user writes it, for whichever lock.
asio::awaitable<int> seven_under(const lockable& lock) {
    auto body = [](lock_guard& guard) -> asio::awaitable<int> { co_return guard.held() ? 7 : 0; };
    co_return co_await lock.with_lock(body);
}

}  // namespace

TEST_CASE("lockable: one function works with locks of every kind") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lockable");
        for (const any_lock& lock : one_of_each(zk, dir)) {
            INFO(lock->path());
            const int seven = co_await seven_under(*lock);
            CHECK(seven == 7);
            lock_guard guard = co_await lock->acquire();
            CHECK(guard.held());
            const auto second = co_await lock->try_acquire();
            CHECK_FALSE(second);
            const auto in_time = co_await lock->try_acquire_for(20ms);
            CHECK_FALSE(in_time);
            const auto late = co_await lock->try_acquire_until(boot_clock::now());
            CHECK_FALSE(late);
            co_await guard.release();
            const auto again = co_await lock->try_acquire();
            CHECK(again);
        }
    };
    with_client(body);
}

TEST_CASE("lockable: readers share, also as lockables") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lockable-readers");
        const shared_mutex rw(zk, dir + "/rw");
        const any_lock readers = boxed(rw.readers()), writers = boxed(rw.as(lock_kind::exclusive));
        const lock_guard first = co_await readers->acquire();
        const auto second = co_await readers->try_acquire();
        CHECK(second);
        const auto writer = co_await writers->try_acquire();
        CHECK_FALSE(writer);
        CHECK(rw.readers().kind() == lock_kind::shared);
        CHECK(rw.kind() == lock_kind::exclusive);
    };
    with_client(body);
}
