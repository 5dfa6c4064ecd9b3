#pragma once

#include <zkasio/error.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace zkasio::detail {

/// Decides what receipts do about a transaction that has failed, and about its receipt. Pure.
///
/// - R1: a transaction that was refused was not applied by this attempt. An earlier attempt whose answer was lost may
///   have been applied, and may be the very reason of the refusal: only the receipt tells.
/// - R2: a receipt has the version of the last transaction that was applied with it. One more, with the data of the
///   transaction in question, says that this transaction was applied; any other state is not this client's writing.
/// - R3: a receipt serves another transaction only if no earlier transaction can still be applied with it.

/// What follows from a failed attempt.
enum class after_failure {
    repeat,      // the outcome may be unknown, or the servers had too much to do
    give_up,     // cancelled, or the session is over: the outcome cannot be found out
    find_out,    // R1: refused; an earlier attempt may have been applied
    no_receipt,  // refused, as the receipt is gone or was written by another client: nothing was applied
    refused,     // nothing was applied
};

inline bool names_lost_receipt(const error& failed, const std::string& receipt) noexcept {
    return failed.path() == receipt && (failed.code() == zk_errc::no_node || failed.code() == zk_errc::bad_version);
}

/// @param maybe_applied by this attempt or by an earlier one.
inline after_failure next_after(const error& failed, const std::string& receipt, bool maybe_applied) noexcept {
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
