#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/locks/detail/local_slots.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The names of the nodes of `slots`. Pure.
namespace zkasio::lock_detail {

inline constexpr std::string_view slot_clock_name = "clock";

/// The number that a node of this name stands for: without leading zeros, and below `n`. Nothing: it is no number.
std::optional<std::uint32_t> slot_of(std::string_view name, std::uint32_t n) noexcept;
std::string used_name(std::uint32_t slot);

struct free_slot {
    std::uint32_t number = 0;
    bool used_before = false;  ///< has a node used_name()
};
/// The free numbers, the lowest first. @param children of the directory.
std::vector<free_slot> free_slots(const std::vector<std::string>& children, std::uint32_t n);

/// The order in which an acquire tries the free numbers: the lowest first; after refusals, from one at random on among
/// the lowest 4, 16, 64 ... So of n clients that start together each is refused about log n times, and not n times.
/// @param refusals how often another client was faster. @param random any number.
void spread(std::vector<free_slot>& free, unsigned refusals, std::uint64_t random);

}  // namespace zkasio::lock_detail

/// How numbers rest, see slots_options::quiet(). Each number that was ever held has a persistent node, its record. Its
/// data say "held", or "rests" since the node's mtime. Every change of a record is part of a transaction that proves
/// the state of the number:
///
///   Q1  A number is acquired together with the change of its record from "rests" to "held", by version: no other
///       client has acquired it since the record was read.
///   Q2  A number is given back together with the change of its record to "rests", by the version that the record had
///       while the node was certain to be ours: the rest begins with the end of the node.
///   Q3  A record "held" without a node of the number is that of a session that has ended. Its rest begins with a
///       transaction that creates and removes that node, which fails if the number is held after all.
///   Q4  The time of the servers is the mtime of a write, so that it compares with the mtime of a record.
namespace zkasio::lock_detail {

struct slot_spec {
    slot_spec() {}  // user-provided: see coroutine_safety.hpp
    std::string path;
    bool is_node = false;  ///< of the one number: of an unfair_mutex. Else a directory
    std::uint32_t n = 0;
    std::string data;
    acl entries;
    std::chrono::milliseconds quiet{0};
    std::chrono::milliseconds first_pause{0}, most_pause{0};  ///< see unfair_mutex_options::back_off()
    std::string_view no_owner;                                ///< why acquire_options::owner() is refused

    bool rests() const noexcept { return quiet > quiet.zero(); }
    std::string node_of(std::uint32_t number) const;
    std::string record_of(std::uint32_t number) const;
};

/// A number that may be acquired now.
struct slot_offer {
    std::uint32_t number = 0;
    std::optional<std::int32_t> record;  ///< version of its record; nothing: there is none
};

struct slot_offers {
    std::vector<slot_offer> now;                    ///< in the order of the question
    std::optional<std::chrono::milliseconds> next;  ///< until the next number has rested
    bool outdated = false;                          ///< something has changed since the listing
};

/// Which of the free numbers may be acquired. Begins the rest of those whose sessions have ended, and tells `local` how
/// long the others rest.
/// @param on patient, as in all functions here. @param now the servers' time, once it was asked for.
asio::awaitable<slot_offers> rested_slots(session on, slot_spec spec, std::shared_ptr<local_slots> local,
                                          std::vector<free_slot> free, std::optional<std::chrono::milliseconds>& now);

/// Creates the node of the number, and returns its czxid.
/// *Fails with* zk_errc::node_exists, also when there is a record of which the offer does not know;
/// zk_errc::bad_version and zk_errc::no_node when the record is another one, or there is no directory.
asio::awaitable<std::int64_t> create_with_record(session on, slot_spec spec, slot_offer offer);

/// Removes the node and begins the rest of its number, unless the node is another client's by now. Repeated until that
/// is certain.
asio::awaitable<void> remove_with_record(session on, slot_spec spec, std::uint32_t number, std::int64_t czxid);

}  // namespace zkasio::lock_detail
