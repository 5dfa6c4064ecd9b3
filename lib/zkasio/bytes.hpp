#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio {

/// The data of a node, as uninterpreted bytes. Takes text or any contiguous range of byte-sized elements and owns a
/// copy, so that an operation may outlive the expression that started it.
class bytes {
public:
    bytes() = default;
    bytes(const char* text) : value_(text) {}
    bytes(std::string text) : value_(std::move(text)) {}
    bytes(std::string_view text) : value_(text) {}

    template <class Range>
        requires(!std::convertible_to<const Range&, std::string_view> &&
                 requires(const Range& r) { std::span(r); } && sizeof(*std::declval<const Range&>().data()) == 1)
    bytes(const Range& range)
        : value_(reinterpret_cast<const char*>(std::span(range).data()), std::span(range).size()) {}

    std::size_t size() const noexcept { return value_.size(); }
    std::string_view view() const noexcept { return value_; }
    std::string take() && noexcept { return std::move(value_); }

private:
    std::string value_;
};

}  // namespace zkasio
