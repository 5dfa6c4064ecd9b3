#include <zkasio/queues/detail/item_payload.hpp>

#include <cstddef>
#include <cstdint>

namespace zkasio::queue_detail {
namespace {

constexpr std::string_view version("\x00\x01\x00\x01", 4);
constexpr char value_follows = 1, end_of_values = 2;
constexpr std::size_t header_size = 5;  // of a value

// Calls `f` with each value. False: the frame is broken.
template <class F>
bool for_each_value(std::string_view data, F f) {
    if (!data.starts_with(version)) return false;
    data.remove_prefix(version.size());
    while (data.size() >= header_size && data.front() == value_follows) {
        std::uint32_t size = 0;
        for (std::size_t i = 1; i < header_size; ++i) size = size << 8 | static_cast<unsigned char>(data[i]);
        data.remove_prefix(header_size);
        if (size > data.size()) return false;
        f(data.substr(0, size));
        data.remove_prefix(size);
    }
    return data.size() == 1 && data.front() == end_of_values;
}

}  // namespace

std::string item_payload::pack(std::string value) const {
    if (!is_framed_) return value;
    std::string data(version);
    data.reserve(version.size() + header_size + value.size() + 1);
    data += value_follows;
    for (int shift = 24; shift >= 0; shift -= 8) data += static_cast<char>(value.size() >> shift & 0xff);
    data += value;
    data += end_of_values;
    return data;
}

std::optional<std::vector<std::string>> item_payload::unpack(std::string_view data) const {
    std::vector<std::string> values;
    if (!is_framed_)
        values.emplace_back(data);
    else if (!for_each_value(data, [&](std::string_view value) { values.emplace_back(value); }))
        return std::nullopt;
    return values;
}

std::string item_payload::value_or_all(std::string data) const {
    if (!is_framed_ || count(data) != 1u) return data;
    return data.substr(version.size() + header_size, data.size() - version.size() - header_size - 1);
}

std::optional<std::size_t> item_payload::count(std::string_view data) noexcept {
    std::size_t n = 0;
    if (!for_each_value(data, [&](std::string_view) { ++n; })) return std::nullopt;
    return n;
}

}  // namespace zkasio::queue_detail
