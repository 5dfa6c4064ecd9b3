#include "interop/contender.hpp"

namespace zkasio::test {
namespace {

asio::awaitable<void> wait_for(std::function<asio::awaitable<lock_guard>()> acquire,
                               std::shared_ptr<std::optional<lock_guard>> guard) {
    lock_guard ours = co_await acquire();
    guard->emplace(std::move(ours));
}

}  // namespace

// The first answer comes behind the notifications, the second behind the listings that these made us ask for.
asio::awaitable<void> told_all(client zk, std::string path) {
    for (int i = 0; i < 3; ++i) co_await zk.sync(path);
}

void our_contender::join() { waiting_.emplace(executor_, wait_for(acquire_, guard_)); }

asio::awaitable<std::string> our_contender::acquired() {
    const std::exception_ptr failed = co_await waiting_->end();
    if (failed) std::rethrow_exception(failed);
    CHECK((*guard_)->held());
    co_return (*guard_)->path();
}

asio::awaitable<void> our_contender::release() {
    co_await (*guard_)->release();
    guard_->reset();
}

asio::awaitable<void> peer_contender::release() {
    process_.send(id_ + " release");
    co_await process_.expect(id_, "released");
}

}  // namespace zkasio::test
