#pragma once

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::counter_detail {

/// The path and the options of an atomic_counter.
struct counter_spec {
    std::string path;
    counter_options options;
};
using spec_ptr = std::shared_ptr<const counter_spec>;

/// The number in a node, and the version of the node that has it.
struct numbered {
    std::int64_t number = 0;
    std::int32_t version = 0;
};

/// The version of a node after a write; nothing: it becomes negative, and no write can name it as its condition.
constexpr std::optional<std::int32_t> version_after(std::int32_t version) noexcept {
    if (version == std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return version + 1;
}

/// The number that `data` says. Throws errc::invalid_argument.
std::int64_t number_in(const counter_spec& what, const std::string& data, const std::string& operation);

/// The receipts of writes to this counter. They do not create the counter's node.
receipts receipts_of(const session& on, const counter_spec& what);

/// Reads the number for a write. Creates the node, with 0, if it is missing. @param on patient. @param behind_sync the
/// server may lag behind the one that has refused a write.
asio::awaitable<numbered> read_number(session on, spec_ptr what, bool behind_sync, std::string operation);

/// Writes `next` into the node that has `last`, exactly once. False: another client has written, created or removed the
/// node.
asio::awaitable<bool> write_number(receipts with, spec_ptr what, numbered last, std::int64_t next,
                                   std::string operation);

/// Waits for the mutex of counter_options::promote_to(). Its queue binds all writers: while it has contenders, each
/// takes its turn there before it writes.
asio::awaitable<lock_guard> take_turn(client zk, spec_ptr what, std::string operation);
/// Whether others have or want that mutex, see has_contenders().
asio::awaitable<bool> is_queued(session on, spec_ptr what, pending_data earlier);

/// Whether the mutex is held, as far as is known: an operator may remove the contender.
inline bool is_turn(const lock_guard& guard) noexcept { return guard.reason() == loss_reason::none; }

}  // namespace zkasio::counter_detail
