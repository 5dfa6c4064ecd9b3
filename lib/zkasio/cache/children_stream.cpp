#include <zkasio/cache/children_stream.hpp>

#include <zkasio/cache/detail/stream_state.hpp>

#include <algorithm>
#include <utility>

namespace zkasio {

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_children>> sorted(asio::awaitable<std::optional<node_answer>> next) {
    std::optional<node_answer> found = co_await std::move(next);
    std::optional<node_children> children;
    if (found) {
        std::sort(found->children.begin(), found->children.end());
        children.emplace(node_children{std::move(found->children), found->stat});
    }
    co_return children;
}

}  // namespace

children_stream::children_stream(const client& zk, std::string path)
    : state_(std::make_shared<stream_state>(zk, "watch_children", std::move(path), node_read::children)),
      open_(open_stream(zk, state_)) {}

asio::awaitable<std::optional<node_children>> children_stream::next() const {
    return sorted(next_state(state_));
}
asio::awaitable<std::optional<node_children>> children_stream::settled(any_duration quiet, any_duration at_most) const {
    return sorted(settled_state(state_, quiet, at_most));
}
asio::awaitable<void> children_stream::close() const { return stream_closed(state_); }

children_stream watch_children(const client& zk, std::string path) { return children_stream(zk, std::move(path)); }

}  // namespace zkasio
