#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio {

/// The version of a node that does not exist: who sets with it creates the node, or is refused because there is one by
/// now.
inline constexpr std::int32_t no_node_version = -2;

/// What config_value consists of that does not depend on its type.
namespace config_detail {

class config_core;
class config_reader;
using core_ptr = std::shared_ptr<config_core>;
using reader_ptr = std::shared_ptr<config_reader>;

/// What is known at some moment.
struct config_state {
    std::shared_ptr<const void> value;  // null: none yet
    std::int32_t version = no_node_version;
    std::optional<error> problem;
    std::uint64_t number = 0;  // rises; 0: no server has said anything yet
};
using state_ptr = std::shared_ptr<const config_state>;

/// Throws what it cannot make sense of.
using value_parser = std::function<std::shared_ptr<const void>(std::string_view text)>;

/// @param fallback the value where there is no node; may be null.
ZKASIO_EXPORT core_ptr open_config(const client& zk, std::string path, value_parser parse,
                                   std::shared_ptr<const void> fallback);
ZKASIO_EXPORT void stop_config(const core_ptr& core) noexcept;
ZKASIO_EXPORT const std::string& path_of_config(const core_ptr& core);
/// Never null.
ZKASIO_EXPORT state_ptr state_of_config(const core_ptr& core);
ZKASIO_EXPORT reader_ptr reader_of_config(const core_ptr& core);

ZKASIO_EXPORT asio::awaitable<void> config_ready(core_ptr core);
ZKASIO_EXPORT asio::awaitable<state_ptr> next_config_state(reader_ptr reader);
ZKASIO_EXPORT asio::awaitable<void> close_config(core_ptr core);

/// @param print what is written; called once. What it throws is told as the reason of a failure.
ZKASIO_EXPORT asio::awaitable<std::int32_t> set_config(core_ptr core, std::function<std::string()> print,
                                                       std::int32_t version, create_options how);
/// @param change gets the text that is there, or nothing; called for each attempt.
ZKASIO_EXPORT asio::awaitable<std::int32_t> update_config(
    core_ptr core, std::function<std::string(std::optional<std::string_view> text)> change, create_options how);

/// What update() ends with where there is no value to begin with.
ZKASIO_EXPORT error no_value_to_update(const std::string& path);
/// The exception that is being handled, of a parser or its like, as errc::invalid_argument with its text.
[[noreturn]] ZKASIO_EXPORT void throw_refusal(std::string_view operation, const std::string& path);

/// The same for what was written for a value, and cannot be read: as an exception for throw_refusal().
[[noreturn]] ZKASIO_EXPORT void throw_unreadable();

/// What `f` throws becomes an error that speaks of `operation` on `path`.
template <class F>
auto explained(std::string_view operation, const std::string& path, F f) {
    try {
        return f();
    } catch (...) {
        throw_refusal(operation, path);
    }
}

}  // namespace config_detail
}  // namespace zkasio
