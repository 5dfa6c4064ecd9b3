#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/lease.hpp>
#include <zkasio/detail/waitable.hpp>
#include <zkasio/loss_reason.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace zkasio::detail {

struct epoch;
struct watch_state;

/// A node of a session on which somebody relies, see session::hold().
struct hold {
    std::shared_ptr<detail::epoch> epoch;
    std::string path;
    std::atomic<loss_reason> reason{loss_reason::none};  // written on the strand, read anywhere
    waitable_ptr lost = std::make_shared<waitable>();
    bool confirmed = false;  // the lease has covered it at least once: from then on the lease's end is its end
    bool unreadable = false;  // we may not check it
    bool removing = false;  // its node is on its way out
    boot_clock::time_point since{};
    std::shared_ptr<watch_state> watch;  // on its own node
    waitable_ptr renewed = std::make_shared<waitable>();  // confirmed, or over
};

/// One session, from the first attempt to open it to its end. Nothing of it is ever used by the next.
/// Atomics are read from any thread; the rest lives on the strand.
struct epoch {
    std::atomic<std::int64_t> session_id{0};
    std::atomic<std::int64_t> timeout_ms{0};
    std::atomic<boot_clock::rep> lease_end{0};
    std::atomic<bool> over{false};

    detail::lease lease;
    waitable_ptr ended = std::make_shared<waitable>();
    std::vector<std::shared_ptr<hold>> holds;
    std::size_t next_heartbeat_part = 0;
    bool heartbeat_under_way = false;
    boot_clock::time_point last_heartbeat{};

    boot_clock::time_point leased_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(lease_end.load(std::memory_order_acquire)));
    }
};

using epoch_ptr = std::shared_ptr<epoch>;
using hold_ptr = std::shared_ptr<hold>;

}  // namespace zkasio::detail
