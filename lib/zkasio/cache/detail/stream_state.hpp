#pragma once

#include <zkasio/client.hpp>
#include <zkasio/recipe/node_follower.hpp>
#include <zkasio/recipe/one_at_a_time.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::cache_detail {

/// The state of a value_stream or a children_stream.
struct stream_state {
    /// @param n the operation that errors name.
    stream_state(const client& zk, std::string n, std::string p, node_read what);

    const std::string name, path;
    const node_follower follower;
    one_at_a_time reading;
    std::optional<node_mark> told;  // the last result or error of next(); only used by the coroutine that runs next()
};
using stream_ptr = std::shared_ptr<stream_state>;

/// Keeps the client open, and stops the stream when destroyed.
std::shared_ptr<const void> open_stream(const client& zk, const stream_ptr& stream);

/// The next state; nothing: there is no node. @param stream null: the stream was moved from.
asio::awaitable<std::optional<node_answer>> next_state(stream_ptr stream);
/// As next_state(), when the state has not changed for `quiet`, or `at_most` after the first change.
asio::awaitable<std::optional<node_answer>> settled_state(stream_ptr stream, std::chrono::nanoseconds quiet,
                                                          std::chrono::nanoseconds at_most);
asio::awaitable<void> stream_closed(stream_ptr stream);

}  // namespace zkasio::cache_detail
