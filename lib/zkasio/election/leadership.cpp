#include <zkasio/election/leadership.hpp>

namespace zkasio {
namespace {

asio::awaitable<void> written(asio::awaitable<std::vector<step_result>> commit) { co_await std::move(commit); }

}  // namespace

asio::awaitable<void> leadership::proclaim(bytes data) const {
    transaction steps;
    steps.set(path(), std::move(data));
    return written(guard_.commit(std::move(steps)));
}

}  // namespace zkasio
