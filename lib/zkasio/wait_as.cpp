#include <zkasio/wait_as.hpp>

#include <zkasio/error.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

namespace zkasio {

void rethrow_as(std::string_view operation, std::string_view path) {
    try {
        throw;
    } catch (const error& e) {
        throw error(e.code(), operation, path);
    }
}

void rethrow_step_as(std::string_view operation, std::string_view path) {
    try {
        throw;
    } catch (const error& e) {
        if (e.path() != path) throw;
        throw error(e.code(), operation, path, e.hint(), e.outcome_unknown());
    }
}

asio::awaitable<void> wait_as(one_shot_event event, std::string operation, std::string path) {
    try {
        co_await event.wait();
    } catch (...) {
        rethrow_as(operation, path);
    }
}

asio::awaitable<void> yield_turn() { co_await asio::post(asio::use_awaitable); }

}  // namespace zkasio
