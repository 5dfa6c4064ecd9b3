// Each line that is marked so has to be refused by every compiler, with words that name what a body is called with: the
// callable takes something else, or is no coroutine.
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/session_loop.hpp>

using namespace zkasio;

using task = asio::awaitable<void>;

task all(client zk, mutex m, leader_election election) {
    const auto soon = boot_clock::now() + std::chrono::seconds(1);

    co_await m.with_lock([]() -> task { co_return; });                                                 // refused
    co_await m.with_lock([](leadership&) -> task { co_return; });                                      // refused
    co_await m.with_lock([](lock_guard&) {});                                                          // refused
    co_await m.with_lock([](lock_guard&) { return 7; });                                               // refused
    co_await election.lead([](lock_guard&) -> task { co_return; });                                    // refused
    co_await zk.with_session([](client) -> task { co_return; });                                       // refused
    co_await run_with_deadline(soon, [](int) -> task { co_return; });                                  // refused
}
