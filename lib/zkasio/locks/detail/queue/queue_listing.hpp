#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/recipe/pending.hpp>

#include <cstdint>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: lists the directory, with one listing at a time for all contenders that need one. The outcome
/// goes to lock_queue::listed() or listing_failed(). On the strand.
class queue_listing {
public:
    explicit queue_listing(lock_queue& queue);
    /// Sends a listing, unless one is under way or the pause before the next one is not over.
    void ask();

private:
    void answered(const pending_children& listing, std::uint64_t number);
    void ask_later();

    lock_queue& queue_;
    bool under_way_ = false;  // also during the pause before the next
    back_off pauses_;
};

}  // namespace zkasio::lock_detail
