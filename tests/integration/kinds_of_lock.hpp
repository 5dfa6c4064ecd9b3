#pragma once

#include "support/test_client.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

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
inline std::vector<any_lock> one_of_each(const client& zk, const std::string& dir) {
    const shared_mutex rw(zk, dir + "/rw"), read(zk, dir + "/read");
    multi_mutex both(zk), mixed(zk), shared_ptrs(zk);
    both.add(mutex(zk, dir + "/b1")).add(mutex(zk, dir + "/b2"), acquire_options());
    mixed.add(mutex(zk, dir + "/m1"))
        .add(semaphore(zk, dir + "/m2", permits::fixed(1)), 1)
        .add(own_kind(zk, dir + "/m3"));
    mixed.add(rw.as(lock_kind::exclusive)).add(shared_mutex(zk, dir + "/m4"), lock_kind::shared).add_shared(read);
    shared_ptrs.add(boxed(mutex(zk, dir + "/p1"))).add(std::make_shared<mutex>(zk, dir + "/p2"), acquire_options());
    std::vector<any_lock> all;
    all.push_back(boxed(shared_ptrs));
    all.push_back(boxed(mutex(zk, dir + "/mutex")));
    all.push_back(boxed(unfair_mutex(zk, dir + "/flag")));
    all.push_back(boxed(slots(zk, dir + "/slots", 1)));
    all.push_back(boxed(own_kind(zk, dir + "/own")));
    all.push_back(boxed(rw));
    all.push_back(boxed(read.as(lock_kind::exclusive)));
    all.push_back(boxed(both));
    all.push_back(boxed(mixed));
    all.push_back(boxed(semaphore(zk, dir + "/permits", permits::fixed(3)).request(2)));
    return all;
}

}  // namespace zkasio::test
