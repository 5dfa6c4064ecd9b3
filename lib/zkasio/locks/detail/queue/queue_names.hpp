#pragma once

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::lock_detail {

/// The place of a contender of this session in the queue of a lock: keys order as the contenders do.
struct queue_key {
    std::int64_t number = 0;  ///< the sequence number, without its wrap-around
    lock_kind kind = lock_kind::exclusive;
    std::uint32_t id = 0;  ///< distinguishes contenders of this session with the same number
    friend auto operator<=>(const queue_key&, const queue_key&) = default;
};

}  // namespace zkasio::lock_detail

/// The meaning of the names in a lock's directory. No input, no output, no waiting.
namespace zkasio::lock_detail {

/// The sequence number behind the last `marker` in `name`, see sequence_behind().
std::optional<std::int32_t> sequence_of(std::string_view name, std::string_view marker) noexcept;

/// Whether `a` was created before `b`. Wraps around: right as long as fewer than 2^31 numbers lie between them.
constexpr bool before(std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b)) < 0;
}

/// One lock's part of a name_scheme.
class queue_names {
public:
    /// @param directory only for messages.
    queue_names(const name_scheme& scheme, std::string exclusive, std::string shared, std::string directory);

    struct parsed {
        std::int32_t sequence;
        lock_kind kind;
    };
    /// Throws errc::foreign_child, which names the child, when the child cannot be ordered among the others.
    parsed parse(std::string_view name) const;
    /// As parse(), but nothing for a child that the scheme allows and does not know.
    std::optional<parsed> contender(std::string_view name) const;
    /// Whether the child may be a contender: known to the scheme, or not allowed to be anything else.
    bool may_contend(std::string_view name) const noexcept { return !foreign_allowed_ || find(name).has_value(); }

    /// The name of a new node, up to its sequence number.
    std::string prefix(const std::string& id, lock_kind kind) const;
    /// How long such names are.
    std::size_t prefix_size(lock_kind kind) const noexcept;
    /// The sequence number of a contender, as it is written in its name.
    std::string_view digits(std::string_view name) const;
    /// A new id, as this scheme writes it.
    std::string new_id() const;

    bool has_shared() const noexcept { return !shared_.empty(); }
    bool has_id() const noexcept { return has_id_; }
    const std::string& exclusive() const noexcept { return exclusive_; }
    const std::string& shared() const noexcept { return shared_; }

    struct contender_name {
        std::string name;
        lock_kind kind;
    };
    /// The contenders among the children, in the order in which they were created. Throws as parse().
    std::vector<contender_name> in_order(std::vector<std::string> children) const;

    /// The same names, for messages about this directory.
    queue_names in(std::string directory) const;

    /// The arguments of name_scheme::plain() or custom() behind the prefix, for messages: "write-", "read-". Also of a
    /// mutex with a scheme that has readers.
    std::string markers() const;

    /// A string that differs between locks that write their names in different ways.
    std::string key() const;

private:
    std::optional<parsed> find(std::string_view name) const noexcept;

    std::string prefix_, separator_;
    bool dashes_, has_id_, foreign_allowed_;
    std::string exclusive_, shared_, readers_of_scheme_, directory_;
};

}  // namespace zkasio::lock_detail
