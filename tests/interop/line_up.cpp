#include "interop/line_up.hpp"

#include "support/lock_directory.hpp"

#include <zkasio/locks/cohort_mutex.hpp>

#include <chrono>

namespace zkasio::test {

asio::awaitable<void> line_up::join(std::unique_ptr<contender> next) {
    next->join();
    line_.push_back(std::move(next));
    co_await until_queued(zk_, path_, line_.size());
}

asio::awaitable<void> line_up::ours(client zk) {
    auto next = std::make_unique<our_contender>(co_await asio::this_coro::executor, mutex(zk, path_, options_));
    co_await join(std::move(next));
}

asio::awaitable<void> line_up::our_cohort(client zk) {
    const cohort_mutex lock(zk, path_, cohort_mutex_options().linger(std::chrono::seconds(0)));
    const auto executor = co_await asio::this_coro::executor;
    auto next = std::make_unique<our_contender>(executor, [lock] { return lock.acquire(); });
    co_await join(std::move(next));
}

asio::awaitable<void> line_up::theirs(library who) {
    const std::string id = "n" + std::to_string(line_.size());
    auto next = std::make_unique<peer_contender>(who.process, id, who.kind, path_);
    co_await join(std::move(next));
}

asio::awaitable<void> line_up::drain() {
    const mutex lock(zk_, path_, options_);
    for (std::size_t i = 0; i < line_.size(); ++i) {
        const std::string node = co_await line_[i]->acquired();
        co_await zk_.sync(path_);  // it may talk to another server
        const std::vector<contender_info> list = co_await lock.contenders();
        REQUIRE(list.size() == line_.size() - i);
        CHECK(list[0].path == node);
        for (std::size_t later = i + 1; later < line_.size(); ++later) CHECK_FALSE(line_[later]->has_it());
        co_await line_[i]->release();
    }
    line_.clear();
    co_await until_queued(zk_, path_, 0);
}

}  // namespace zkasio::test
