// A guard that nobody keeps gives the lock back at once: compilers that look at what a co_await expression returns warn
// of the lines that are marked.
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/shared_mutex.hpp>

using namespace zkasio;

asio::awaitable<void> all(mutex m, shared_mutex rw) {
    co_await m.acquire();          // refused
    co_await rw.acquire_shared();  // refused
    const lock_guard kept = co_await m.acquire();
    co_await m.try_acquire_for(std::chrono::seconds(1));  // a std::optional, of which they know nothing
}
