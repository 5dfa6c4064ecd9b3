#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/recipe/pending.hpp>

#include <cstdint>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: the listing of its directory, one at a time for all who need one. What comes of it ends in
/// lock_queue::listed() or listing_failed(). On the strand.
class queue_listing {
public:
    explicit queue_listing(lock_queue& queue);
    /// Unless there is one under way, or a pause before the next.
    void ask();

private:
    void answered(const pending_children& listing, std::uint64_t number);
    void ask_later();

    lock_queue& queue_;
    bool under_way_ = false;  // also during the pause before the next
    back_off pauses_;
};

}  // namespace zkasio::lock_detail
