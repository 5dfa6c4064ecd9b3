#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/loss_reason.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

/// What a client_observer is told of queues, counters, transactions that run again, barriers, and bodies under locks.
namespace zkasio {

/// The writes that are repeated until their outcome is certain, and while other clients are ahead.
enum class commit_kind : std::uint8_t {
    put,              ///< work_queue: items are put, together
    claim,            ///< work_queue: items are claimed, together; each claim is one attempt
    bury,             ///< work_queue: an item that was delivered too often is moved to the dead ones
    add,              ///< atomic_counter: all additions that waited for this write
    compare_and_set,  ///< atomic_counter
    id_block,         ///< id_allocator: a block of ids is fetched
    modify,           ///< modify(), and config_value::update()
    transact,         ///< transact()
};
inline constexpr std::size_t commit_kinds = 8;
constexpr std::string_view to_string(commit_kind k) noexcept {
    switch (k) {
        case commit_kind::put: return "put";
        case commit_kind::claim: return "claim";
        case commit_kind::bury: return "bury";
        case commit_kind::add: return "add";
        case commit_kind::compare_and_set: return "compare_and_set";
        case commit_kind::id_block: return "id_block";
        case commit_kind::modify: return "modify";
        case commit_kind::transact: return "transact";
    }
    return "unknown";
}

/// One of these writes, from its call to its end, with all attempts.
struct commit_report {
    commit_kind kind{};
    std::string path;    ///< of the structure; "" for transact()
    std::error_code code;  ///< none: the write was applied, or there was nothing to write. An exception of the user's
                           ///< function that has no code is std::errc::operation_canceled
    bool outcome_unknown = false;  ///< a failure after which the write may have been applied
    bool promoted = false;         ///< waited for the mutex of promote_to()
    std::size_t conflicts = 0;     ///< attempts that another client was ahead of
    std::size_t parts = 1;         ///< items that were put or claimed, additions, ids of a block
    boot_clock::time_point asked{}, ended{};
};

/// How a claim of an item of a work_queue has ended.
enum class delivery_end : std::uint8_t {
    done,        ///< the item is done, or was taken
    given_back,  ///< some consumer is given the item again
    rejected,    ///< the item is among the dead ones
    lost,        ///< the claim was lost: some consumer is given the item again, or an operator has removed it
};
inline constexpr std::size_t delivery_ends = 4;
constexpr std::string_view to_string(delivery_end e) noexcept {
    switch (e) {
        case delivery_end::done: return "done";
        case delivery_end::given_back: return "given_back";
        case delivery_end::rejected: return "rejected";
        case delivery_end::lost: return "lost";
    }
    return "unknown";
}

/// One claim of an item, which has ended.
struct delivery_report {
    std::string path;         ///< of the queue
    std::string item;         ///< the name of the item's node
    int attempt = 0;          ///< how often the item was claimed
    std::int64_t token = 0;   ///< of the claim
    delivery_end how{};
    loss_reason lost = loss_reason::none;  ///< of a claim that was lost
    /// By the servers' clocks: from the put of the item, or the end of its delay, to this claim. Nothing: not known.
    std::optional<std::chrono::milliseconds> waited;
    boot_clock::time_point claimed{}, ended{};
};

enum class barrier_step : std::uint8_t { enter, leave };
constexpr std::string_view to_string(barrier_step s) noexcept { return s == barrier_step::enter ? "enter" : "leave"; }

/// One step of a member of a double_barrier, which has ended.
struct barrier_report {
    std::string path;  ///< of the barrier
    barrier_step step{};
    std::error_code code;                  ///< none: all members were there, or have left
    loss_reason lost = loss_reason::none;  ///< of a member that leaves: how it was lost while it was inside
    boot_clock::time_point asked{}, ended{};
};

/// A body under a lock that was stopped because the lease was about to end, see lock_guard::run(), and has ended.
struct lock_stop_report {
    std::string path;  ///< of the lock's node
    std::int64_t token = 0;
    std::chrono::nanoseconds margin{0};
    /// The lock was lost before the body had ended: the stop margin was too short for this body.
    bool overran = false;
    boot_clock::time_point lease_end{};  ///< as it was when the body was stopped
    boot_clock::time_point stopped{}, ended{};
};

}  // namespace zkasio
