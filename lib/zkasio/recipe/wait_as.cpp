#include <zkasio/recipe/wait_as.hpp>

#include <zkasio/error.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

namespace zkasio {

asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path) {
    try {
        co_await event.wait();
    } catch (...) {
        rethrow_as(operation, path);
    }
}

asio::awaitable<void> yield_turn() { co_await asio::post(asio::use_awaitable); }

}  // namespace zkasio
