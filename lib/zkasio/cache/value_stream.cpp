#include <zkasio/cache/value_stream.hpp>

#include <zkasio/cache/detail/stream_state.hpp>

#include <utility>

namespace zkasio {

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_data>> as_value(asio::awaitable<std::optional<node_answer>> next) {
    std::optional<node_answer> found = co_await std::move(next);
    std::optional<node_data> value;
    if (found) value.emplace(node_data{std::move(found->data), found->stat});
    co_return value;
}

}  // namespace

value_stream::value_stream(const client& zk, std::string path)
    : state_(std::make_shared<stream_state>(zk, "watch_value", std::move(path), node_read::data)),
      open_(open_stream(zk, state_)) {}

asio::awaitable<std::optional<node_data>> value_stream::next() const { return as_value(next_state(state_)); }
asio::awaitable<std::optional<node_data>> value_stream::settled(any_duration quiet, any_duration at_most) const {
    return as_value(settled_state(state_, quiet, at_most));
}
asio::awaitable<void> value_stream::close() const { return stream_closed(state_); }

value_stream watch_value(const client& zk, std::string path) { return value_stream(zk, std::move(path)); }

}  // namespace zkasio
