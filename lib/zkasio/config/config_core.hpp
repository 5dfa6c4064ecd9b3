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

/// The version of a node that does not exist. A set() with it creates the node, or is refused if there is one already.
inline constexpr std::int32_t no_node_version = -2;

/// The part of config_value that does not depend on its type.
namespace config_detail {

class config_core;
class config_reader;
using core_ptr = std::shared_ptr<config_core>;
using reader_ptr = std::shared_ptr<config_reader>;

/// The state of a config_value at one moment, without its type: see config_snapshot.
struct config_state {
    std::shared_ptr<const void> value;  // null: none yet
    std::int32_t version = no_node_version;
    std::optional<error> problem;
    std::uint64_t number = 0;  // rises with each state; 0: no server has answered yet
};
using state_ptr = std::shared_ptr<const config_state>;

/// Throws any exception for a text that cannot be read.
using value_parser = std::function<std::shared_ptr<const void>(std::string_view text)>;

/// @param fallback the value where there is no node; may be null.
ZKASIO_EXPORT core_ptr open_config(const client& zk, std::string path, value_parser parse,
                                   std::shared_ptr<const void> fallback);
/// Keeps the client open, and stops the core when destroyed. (Waiting coroutines share the core, and alone would keep
/// it going.)
ZKASIO_EXPORT std::shared_ptr<const void> keep_config_open(const client& zk, const core_ptr& core);
ZKASIO_EXPORT const std::string& path_of_config(const core_ptr& core);
/// Never null.
ZKASIO_EXPORT state_ptr state_of_config(const core_ptr& core);
ZKASIO_EXPORT reader_ptr reader_of_config(const core_ptr& core);

ZKASIO_EXPORT asio::awaitable<void> config_ready(core_ptr core);
ZKASIO_EXPORT asio::awaitable<state_ptr> next_config_state(reader_ptr reader);
ZKASIO_EXPORT asio::awaitable<void> close_config(core_ptr core);

/// @param print returns the text to write; called once. An exception of `print` is told as the reason of a failure.
ZKASIO_EXPORT asio::awaitable<std::int32_t> set_config(core_ptr core, std::function<std::string()> print,
                                                       std::int32_t version, create_options how);
/// False: there is a node already.
ZKASIO_EXPORT asio::awaitable<bool> initialize_config(core_ptr core, std::function<std::string()> print,
                                                      create_options how);
/// @param change gets the node's text, or nothing if there is no node; called for each attempt.
ZKASIO_EXPORT asio::awaitable<std::int32_t> update_config(
    core_ptr core, std::function<std::string(std::optional<std::string_view> text)> change, create_options how);

/// The error of update() if there is neither a node nor a default.
ZKASIO_EXPORT error no_value_to_update(const std::string& path);
/// Throws errc::invalid_argument with the text of the exception that is being handled, for example a parser's.
[[noreturn]] ZKASIO_EXPORT void throw_refusal(std::string_view operation, const std::string& path);

/// Throws an exception for throw_refusal(): the text that was written for a value cannot be read, because of the
/// exception that is being handled.
[[noreturn]] ZKASIO_EXPORT void throw_unreadable();

/// Calls `f`. An exception of `f` becomes an error of `operation` on `path`, see throw_refusal().
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
