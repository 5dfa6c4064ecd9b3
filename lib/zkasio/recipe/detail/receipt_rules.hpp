#pragma once

#include <zkasio/error.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace zkasio::detail {

/// What zkasio::receipts does after a failed attempt of a transaction. A receipt is a node that each one writes. Pure.
///
/// - R1: if a server refuses a transaction, this attempt did not apply it. An earlier attempt whose answer was lost may
///   have applied the transaction, and may be the reason of the refusal: only the receipt tells.
/// - R2: a transaction raises the version of its receipt by one. The old version: not applied. One more, with the data
///   of the transaction: applied. In any other state another client has written the receipt, and it tells nothing.
/// - R3: a receipt serves another transaction only if no earlier transaction can still be applied with it.

/// What follows from a failed attempt.
enum class after_failure {
    repeat,      // the outcome may be unknown, or the servers had too much to do
    give_up,     // cancelled, or the session is over: the outcome cannot be found out
    find_out,    // R1: refused, and an earlier attempt may have been applied; or the servers hang up at it
    no_receipt,  // refused, as the receipt is gone or was written by another client: nothing was applied
    refused,     // nothing was applied
};

inline bool names_lost_receipt(const error& failed, const std::string& receipt) noexcept {
    return failed.path() == receipt && (failed.code() == zk_errc::no_node || failed.code() == zk_errc::bad_version);
}

/// @param maybe_applied by this attempt or by an earlier one.
inline after_failure next_after(const error& failed, const std::string& receipt, bool maybe_applied) noexcept {
    if (failed.hung_up() && maybe_applied) return after_failure::find_out;
    if (failed.code() == condition::retryable) return after_failure::repeat;
    if (failed.outcome_unknown() || failed.code() == condition::session_ended) return after_failure::give_up;
    if (maybe_applied) return after_failure::find_out;
    return names_lost_receipt(failed, receipt) ? after_failure::no_receipt : after_failure::refused;
}

/// What a receipt says about the transaction that was to be applied with it.
enum class receipt_says {
    applied,
    not_applied,
    nothing,  // R2: another client has written or removed the receipt
};

/// @param now the receipt's node; nothing: it is gone. @param version before the transaction. @param data of the
/// receipt, written by the transaction.
inline receipt_says read_receipt(const std::optional<node_data>& now, std::int32_t version, const std::string& data) {
    if (!now) return receipt_says::nothing;
    if (now->stat.version == version) return receipt_says::not_applied;
    return now->stat.version == version + 1 && now->data == data ? receipt_says::applied : receipt_says::nothing;
}

/// Whether another transaction can be applied with a receipt of this version: the next version is no negative number.
constexpr bool can_serve_again(std::int32_t version) noexcept {
    return version < std::numeric_limits<std::int32_t>::max();
}

}  // namespace zkasio::detail
