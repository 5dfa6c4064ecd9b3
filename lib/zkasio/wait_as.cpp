#include <zkasio/wait_as.hpp>

#include <zkasio/error.hpp>

namespace zkasio {

asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path) {
    try {
        co_await event.wait();
    } catch (const error& e) {
        throw error(e.code(), operation, path);
    }
}

}  // namespace zkasio
