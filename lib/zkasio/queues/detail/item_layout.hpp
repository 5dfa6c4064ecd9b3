#pragma once

#include <zkasio/queues/work_queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The names of the items in a queue's directory. No input, no output, no waiting.
namespace zkasio::queue_detail {

/// A time by the servers' clocks.
using server_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// An item that waits for a time, in a directory of its own.
struct later_item {
    server_time due;
    std::string name;
    std::string prefix;  // of its name as an item that waits no longer
};

/// The names of one layout.
class item_names {
public:
    explicit item_names(queue_kind of) noexcept : kind_(of) {}

    /// Whether a name contains the time at which its item is due: these items wait among the others.
    bool tell_times() const noexcept { return kind_ == queue_kind::curator_delay; }

    /// Throws errc::invalid_argument for what the layout cannot express.
    void require(const put_options& how) const;
    /// The name of a new item, up to its sequence number. As require(). @param due only used if the names tell times.
    std::string prefix(const put_options& how, server_time due = server_time()) const;
    /// The part of an item's name in front of the sequence number. Empty: this is no item's name.
    std::string_view prefix_of(std::string_view name) const noexcept;

    /// The items in the order in which they are handed out: by time, by priority, and then as they were put. Sequence
    /// numbers may wrap around, as long as fewer than 2^31 numbers lie between two items. Throws errc::foreign_child,
    /// which names the child, for a child that is no item. @param directory for this message.
    std::vector<std::string> in_order(std::vector<std::string> children, std::string_view directory) const;
    /// When an item is due; 1970 if its name does not tell a time.
    server_time due(std::string_view name) const noexcept;

    /// The name of an item that waits for a time, up to its sequence number: the time, in hexadecimal, and what follows
    /// "entry-", or its like, in the name of the item.
    std::string later_prefix(server_time due, const put_options& how) const;
    /// Nothing: no such name.
    std::optional<later_item> parse_later(std::string name) const;

    /// The name of the item, up to its sequence number; empty: this is no dead item's name.
    std::string_view prefix_of_dead(std::string_view name) const noexcept;

private:
    std::string_view marker() const noexcept;
    std::string_view before_number() const noexcept;
    bool is_valid_middle(std::string_view text) const noexcept;
    bool may_be_plain() const noexcept;
    bool has_text_order() const noexcept;

    queue_kind kind_;
};

/// The name of a dead item, which tells the item's name, and is another one if a re-created queue uses that name again.
std::string dead_name(std::string_view name, std::int64_t czxid);
/// The name of the node below a dead item that tells why the item is dead.
inline constexpr std::string_view dead_reason = "reason";

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
