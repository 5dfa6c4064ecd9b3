#pragma once

#include <compare>
#include <cstdint>

namespace zkasio {

/// Rises with every grant of a lock, over the whole ensemble, for as long as the servers keep their data. An ensemble
/// that was wiped, or restored from a backup, gives out tokens again that it has given out before. Send the token along
/// with what the lock protects, and let the receiver refuse smaller tokens: then a holder that was paused and has lost
/// the lock without noticing does no harm.
///
/// The token is the czxid of the lock's node (of several nodes: the largest), value(), and the number of the turn under
/// this node, turn(), by which later grants under the same node are larger. All locks but cohort_mutex have one grant
/// for each node: their turn() is 0. A default-constructed token is 0, which is smaller than the token of any grant.
class fencing_token {
public:
    fencing_token() noexcept = default;
    explicit fencing_token(std::int64_t value, std::uint64_t turn = 0) noexcept : value_(value), turn_(turn) {}
    std::int64_t value() const noexcept { return value_; }
    std::uint64_t turn() const noexcept { return turn_; }
    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;

private:
    std::int64_t value_ = 0;
    std::uint64_t turn_ = 0;
};

}  // namespace zkasio
