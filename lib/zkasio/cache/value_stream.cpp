#include <zkasio/cache/value_stream.hpp>

#include <zkasio/cache/detail/stream_state.hpp>

#include <utility>

namespace zkasio {

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_data>> next_value(stream_ptr stream) {
    std::optional<node_answer> found = co_await next_state(std::move(stream));
    std::optional<node_data> value;
    if (found) value.emplace(node_data{std::move(found->data), found->stat});
    co_return value;
}

}  // namespace

value_stream::value_stream(const client& zk, std::string path)
    : state_(std::make_shared<stream_state>(zk, "watch_value", std::move(path), node_read::data)),
      open_(open_stream(zk, state_)) {}

asio::awaitable<std::optional<node_data>> value_stream::next() const { return next_value(state_); }
asio::awaitable<void> value_stream::close() const { return stream_closed(state_); }

value_stream watch_value(const client& zk, std::string path) { return value_stream(zk, std::move(path)); }

}  // namespace zkasio
