#include <zkasio/recipe/retry_until_certain.hpp>

#include <zkasio/error.hpp>

namespace zkasio {

asio::awaitable<void> detail::run_until_certain(std::function<asio::awaitable<void>()> operation, back_off pauses) {
    if (!operation) throw error(errc::invalid_argument, "retry_until_certain", {}, "the operation is empty");
    for (;;) {
        try {
            co_await operation();
            co_return;
        } catch (const error& e) {
            if (e.code() != condition::retryable || e.hung_up()) throw;
        }
        co_await pauses.pause();
    }
}

}  // namespace zkasio
