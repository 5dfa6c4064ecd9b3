#include <zkasio/detail/client/background_tasks.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>

#include <exception>
#include <iterator>
#include <string>
#include <utility>

namespace zkasio::detail {

void background_tasks::run(asio::awaitable<void> task, std::shared_ptr<void> keep_alive, std::function<void()> ended) {
    tasks_.emplace_back();
    const auto me = std::prev(tasks_.end());
    auto done = [this, keep_alive = std::move(keep_alive), ended = std::move(ended),
                 me](const std::exception_ptr& failed) {
        if (failed && !cancelled_) log_failure(failed);
        // Posted: the signal is still in use while its coroutine ends.
        asio::post(strand_, [this, keep_alive, ended, me] {
            tasks_.erase(me);
            ended();
        });
    };
    asio::co_spawn(strand_, std::move(task), asio::bind_cancellation_slot(me->slot(), std::move(done)));
}

void background_tasks::cancel() {
    cancelled_ = true;
    for (asio::cancellation_signal& task : tasks_) task.emit(asio::cancellation_type::terminal);
}

void background_tasks::log_failure(const std::exception_ptr& failed) const noexcept {
    try {
        std::rethrow_exception(failed);
    } catch (const std::exception& e) {
        log_.error(std::string("in the background: ") + e.what());
    } catch (...) {
        log_.error("in the background: an unknown exception");
    }
}

}  // namespace zkasio::detail
