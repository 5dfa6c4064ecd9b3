#include "support/test_client.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>

namespace zkasio::test {

running::running(asio::any_io_executor executor, asio::awaitable<void> task)
    : state_(std::make_shared<state>(executor)) {
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(state_->signal.slot(), [s = state_](std::exception_ptr e) {
                       s->ended = true;
                       s->failed = e;
                       s->ended_timer.cancel();
                   }));
}

void running::cancel(asio::cancellation_type how) {
    state_->signal.emit(how);
    // Since Asio 1.24 the coroutine is cancelled by a pointer into the signal, in a later turn of its executor.
    asio::post(state_->ended_timer.get_executor(), [s = state_] {});
}

asio::awaitable<std::exception_ptr> running::end() const {
    const auto s = state_;
    std::error_code woken;
    if (!s->ended) co_await s->ended_timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    co_return s->failed;
}

asio::awaitable<std::error_code> running::code() const {
    const std::exception_ptr e = co_await end();
    std::error_code code;
    if (e) try {
            std::rethrow_exception(e);
        } catch (const std::system_error& failed) {
            code = failed.code();
        }
    co_return code;
}

asio::awaitable<std::string> fresh_directory(client zk, std::string name) {
    const std::string path = "/test-" + name;
    surroundings::current().own(path);
    co_await zk.remove_recursive(path);
    co_await zk.create(path);
    co_return path;
}

asio::awaitable<void> expire_session(client victim) {
    return surroundings::current().expire_session(std::move(victim));
}

}  // namespace zkasio::test
