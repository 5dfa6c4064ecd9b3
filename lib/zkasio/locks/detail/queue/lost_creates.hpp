#pragma once

#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

class lock_queue;

/// Part of a lock_queue: looks for the nodes of creates whose answers were lost. One cut may lose thousands of answers,
/// so one search serves all creates that were lost before the search began. Contenders that were given up since are
/// included: their nodes have to be removed. On the strand.
class lost_creates {
public:
    explicit lost_creates(lock_queue& queue) : queue_(queue) {}
    /// @param id the id in the name of the node, if there is a node. @param hung_up see node_creation::after_loss().
    void add(const contender_ptr& c, std::string id, std::exception_ptr hung_up);
    /// Removes and returns all contenders that wait for the next search.
    std::vector<contender_ptr> take_waiting();

private:
    struct lost {
        contender_ptr who;
        std::string id;
        std::exception_ptr hung_up;
    };
    using look = std::pair<lost, pending_data>;
    asio::awaitable<void> search(std::shared_ptr<lock_queue> keeps_this_alive);
    asio::awaitable<bool> search_once();
    std::vector<look> look_at_found(const std::vector<lost>& round,
                                    const std::multimap<std::string, std::string>& names,
                                    const std::exception_ptr& failed);
    void found(const lost& l, const created& node);
    void not_found(const lost& l, const std::exception_ptr& failed);
    std::string prefix_of(const lost& l) const;

    lock_queue& queue_;
    std::vector<lost> waiting_;  // for the next search
    bool searching_ = false;
};

}  // namespace zkasio::lock_detail
