#pragma once

#include <algorithm>
#include <cstddef>

namespace zkasio::queue_detail {

/// How many items are read for the next transaction: fewer while the items are large, so that few are read in vain.
/// No input, no output, no waiting.
class batch_limit {
public:
    static constexpr std::size_t most_bytes = 256 * 1024;  ///< in one transaction, unless its first item has more

    /// @param most items in one transaction.
    explicit batch_limit(std::size_t most) noexcept : most_(most), at_once_(most) {}

    std::size_t at_once() const noexcept { return at_once_; }
    void begin() noexcept {
        items_ = bytes_ = 0;
        is_full_ = false;
    }
    /// Whether an item of this size goes into the transaction, too.
    bool takes(std::size_t size) noexcept {
        bytes_ += size;
        is_full_ = items_ > 0 && bytes_ > most_bytes_;
        if (!is_full_) ++items_;
        return !is_full_;
    }
    /// Of all items since begin(), the one that did not fit included.
    std::size_t bytes() const noexcept { return bytes_; }
    void end() noexcept {
        if (is_full_)
            at_once_ = items_;
        else if (bytes_ <= most_bytes_ / 2)
            at_once_ = std::min(2 * at_once_, most_);
    }
    /// Servers hang up at the transaction of this batch: later ones are half as large.
    void was_too_large() noexcept { most_bytes_ = bytes_ / 2; }

private:
    const std::size_t most_;
    std::size_t most_bytes_ = most_bytes;
    std::size_t at_once_, items_ = 0, bytes_ = 0;
    bool is_full_ = false;
};

}  // namespace zkasio::queue_detail
