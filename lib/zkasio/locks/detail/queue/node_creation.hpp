#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/detail/queue/lost_creates.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: creates a contender's node, with all detours (directory, pause, search). Ends in
/// lock_queue::node_created(), or in fail(). On the strand.
class node_creation {
public:
    explicit node_creation(lock_queue& queue);
    /// Sends a create: stage::creating.
    void begin(const contender_ptr& c);
    /// The end of each detour: begins again, unless the detour has `failed` or the contender was given up.
    void after_detour(const contender_ptr& c, std::exception_ptr failed = nullptr);
    /// The answer to the create was lost, and there is no node: begins again, at once the first time, then after
    /// pauses. @param hung_up the contender fails with it: the servers hang up at this create (error::hung_up()).
    void after_loss(const contender_ptr& c, const std::exception_ptr& hung_up);
    /// Removes and returns all contenders on a detour: after_detour() will not be called for these contenders.
    std::vector<contender_ptr> take_waiting();

private:
    void create(const contender_ptr& c);
    void after_room(const contender_ptr& c);
    void wait_for_room();
    void room_changed();
    std::size_t path_bytes(const contender& c) const;
    void answered(const contender_ptr& c);
    void after_pause(const contender_ptr& c);
    void pause();
    void after_making_directory(const contender_ptr& c);
    asio::awaitable<void> make_directory_for_all(std::shared_ptr<lock_queue> keeps_this_alive, lock_spec_ptr spec);

    lock_queue& queue_;
    std::deque<contender_ptr> without_room_;  // see client_options::ephemeral_budget(); some may have left
    bool waits_for_room_ = false;
    std::size_t swept_ = 0;                   // how many were in it after the last removal of those that have left
    std::vector<contender_ptr> throttled_;
    bool pausing_ = false;
    back_off pauses_;
    std::vector<contender_ptr> without_directory_;
    bool making_directory_ = false;
    lost_creates lost_;
};

}  // namespace zkasio::lock_detail
