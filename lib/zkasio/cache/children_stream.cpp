#include <zkasio/cache/children_stream.hpp>

#include <zkasio/cache/detail/stream_state.hpp>

#include <algorithm>
#include <utility>

namespace zkasio {

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_children>> next_children(stream_ptr stream) {
    std::optional<node_answer> found = co_await next_state(std::move(stream));
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

asio::awaitable<std::optional<node_children>> children_stream::next() const { return next_children(state_); }
asio::awaitable<void> children_stream::close() const { return stream_closed(state_); }

children_stream watch_children(const client& zk, std::string path) { return children_stream(zk, std::move(path)); }

}  // namespace zkasio
