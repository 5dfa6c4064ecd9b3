#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

/// What the parser of a cache makes of a node's data: see cache_options::parse() and cached_node::parsed().
namespace zkasio::cache_detail {

struct parsed_value {
    virtual ~parsed_value() = default;
};

template <class T>
struct parsed_as final : parsed_value {
    explicit parsed_as(T v) : value(std::move(v)) {}
    const T value;
};

using node_parser =
    std::function<std::shared_ptr<const parsed_value>(const std::string& path, const std::string& data)>;

}  // namespace zkasio::cache_detail
