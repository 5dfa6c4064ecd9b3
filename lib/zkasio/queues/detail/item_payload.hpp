#pragma once

#include <zkasio/queues/work_queue_options.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::queue_detail {

/// Makes the data of an item's node from the item's value, and back, in one layout. No input, no output, no waiting.
///
/// Curator's ItemSerializer, all numbers big-endian: the int 0x00010001; for each value the byte 1, the int of its
/// size, and its bytes; the byte 2. Other layouts: the data are the value.
class item_payload {
public:
    explicit item_payload(queue_kind of) noexcept
        : is_framed_(of == queue_kind::curator || of == queue_kind::curator_priority ||
                     of == queue_kind::curator_delay || of == queue_kind::curator_id) {}

    static constexpr std::size_t frame_bytes = 10;  ///< around one value, at most

    /// The data of an item with one value.
    std::string pack(std::string value) const;
    /// The values of an item. Nothing: the frame is broken.
    std::optional<std::vector<std::string>> unpack(std::string_view data) const;

    bool has_one_value(std::string_view data) const { return !is_framed_ || count(data) == 1u; }
    /// The value of an item that has one value; all data of any other item.
    std::string value_or_all(std::string data) const;

private:
    static std::optional<std::size_t> count(std::string_view data) noexcept;

    bool is_framed_;
};

}  // namespace zkasio::queue_detail
