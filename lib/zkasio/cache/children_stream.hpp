#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace zkasio {

namespace cache_detail {
struct stream_state;
}

class children_stream;

/// @param path of the parent; need not exist. Throws errc::invalid_path.
ZKASIO_EXPORT children_stream watch_children(const client& zk, std::string path);

/// The lists of the names of one node's children, one list after another: the result of watch_children(). As
/// value_stream, but changes of data do not count. For the data of the children, see children_cache.
class ZKASIO_EXPORT children_stream {
public:
    children_stream(children_stream&&) noexcept = default;
    children_stream& operator=(children_stream&&) noexcept = default;

    /// As value_stream::next(): completes with the sorted names and the stat of the parent, or with nothing if there is
    /// no node. A child that was removed and re-created is a change.
    asio::awaitable<std::optional<node_children>> next() const;

    /// As value_stream::settled().
    asio::awaitable<std::optional<node_children>> settled(any_duration quiet,
                                                          any_duration at_most = std::chrono::nanoseconds::max()) const;

    /// As value_stream::close().
    asio::awaitable<void> close() const;

private:
    friend children_stream watch_children(const client& zk, std::string path);
    children_stream(const client& zk, std::string path);
    std::shared_ptr<cache_detail::stream_state> state_;  // shared with a pending next()
    std::shared_ptr<const void> open_;                   // stops the stream when destroyed
};

}  // namespace zkasio
