#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/watch.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: the watch on the one node whose removal the first waiter has to see. The outcome goes to
/// lock_queue::predecessor_gone(), fail_waiting() or reconsider(). On the strand.
class predecessor_watch {
public:
    explicit predecessor_watch(lock_queue& queue);
    /// Watches the node `name`, and no other node. If that node is watched already, nothing happens.
    void follow(const std::string& name);
    void stop();

private:
    void answered(const std::shared_ptr<pending_watched_data>& asked, std::uint64_t round);
    void wait_for_change(std::uint64_t round);
    void ask_later(std::uint64_t round);

    lock_queue& queue_;
    std::string name_;
    std::uint64_t round_ = 0;  // answers and events of earlier rounds are ignored
    std::shared_ptr<pending_watched_data> request_;
    std::optional<watch> watch_;
    back_off pauses_;
};

}  // namespace zkasio::lock_detail
