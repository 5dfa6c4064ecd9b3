#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

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

/// The names of the children of one node, one list after another: what watch_children() returns. As value_stream, but
/// the data do not count. See children_cache for their data, too.
class ZKASIO_EXPORT children_stream {
public:
    children_stream(children_stream&&) noexcept = default;
    children_stream& operator=(children_stream&& other) noexcept;
    ~children_stream();

    /// As value_stream::next(): completes with the names in order and the stat of the parent, or with nothing where
    /// there is no node. A child that was removed and made anew is a change.
    asio::awaitable<std::optional<node_children>> next() const;

    /// As value_stream::close().
    asio::awaitable<void> close() const;

private:
    friend children_stream watch_children(const client& zk, std::string path);
    children_stream(const client& zk, std::string path);
    std::shared_ptr<const void> open_;
    std::shared_ptr<cache_detail::stream_state> state_;
};

}  // namespace zkasio
