#pragma once

#include <zkasio/types.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// Nodes for people and for programs.
namespace zklock {

/// "0x1000a2b"
std::string hex(std::int64_t number);
/// "2026-01-31T12:00:00.123Z"
std::string to_text_time(std::int64_t ms_since_1970);
/// How long ago, if this machine's clock agrees with the server's; never negative.
std::chrono::milliseconds age_of(std::int64_t ms_since_1970);

nlohmann::ordered_json to_json(const zkasio::node_stat& s);
/// `data` as a JSON string; what is not UTF-8 is {"base64": ...}.
nlohmann::ordered_json json_text(const std::string& data);

/// A JSON document as text that ends its line, whatever is in it. Nothing in it can control a terminal.
enum class json_layout { pretty, one_line };
std::string dump(const nlohmann::ordered_json& j, json_layout how = json_layout::pretty);

std::string base64(std::string_view data);

}  // namespace zklock
