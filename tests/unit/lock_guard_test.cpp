#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/lock_guard.hpp>

#include <atomic>
#include <thread>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Of no lock at all.
class no_claim final : public lock_claim {
public:
    explicit no_claim(client zk) : on_(zk.session_now()), hold_(on_.hold("/a")) {}
    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return 1; }
    void give_up() noexcept override { hold_.end(); }
    asio::awaitable<void> gone() override { co_return; }

private:
    session on_;
    session_hold hold_;
    std::vector<std::string> paths_{"/a"};
};

}  // namespace

TEST_CASE("lock_guard: held() and its like may be asked from any thread, also while it is released") {
    asio::io_context io;
    const client zk(io.get_executor(), options("127.0.0.1:1"));
    for (int round = 0; round < 20; ++round) {
        lock_guard guard(std::make_shared<no_claim>(zk));
        std::atomic<bool> asked{false};
        std::thread other([&] {
            while (guard.reason() != loss_reason::released) {
                asked = guard.held() || guard.held_until() == boot_clock::time_point();
            }
        });
        while (!asked) std::this_thread::yield();
        { const auto releasing = guard.release(); }
        CHECK_FALSE(guard.held());
        other.join();
    }
}
