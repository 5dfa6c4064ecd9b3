#pragma once

#include <zkasio/back_off.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/watch.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Part of a lock_queue: the watches on the nodes whose removal the first waiter has to see. The outcomes go to
/// lock_queue::followed_gone(), fail_waiting() or reconsider(). On the strand.
class followed_nodes {
public:
    explicit followed_nodes(lock_queue& queue);
    /// Watches the nodes `names`, and no others. Nodes that are watched already are not asked for again.
    /// @param nearest_counts the first of them is the nearest in the way: if it may not be read, nobody can wait.
    void follow(const std::vector<std::string>& names, bool nearest_counts);
    void stop() { followed_.clear(); }
    bool follows(std::string_view name) const {
        const auto it = followed_.find(name);
        return it != followed_.end() && !it->second.unreadable;
    }

private:
    struct one {
        std::uint64_t round = 0;  // answers and events of other rounds are ignored
        std::shared_ptr<pending_watched_data> request;
        std::optional<watch> changes;
        bool refused = false;     // asked for again after a pause
        bool unreadable = false;  // asked for again when it is the nearest
    };
    void begin(const std::string& name);
    one* find(const std::string& name, std::uint64_t round);
    void answered(const std::string& name, std::uint64_t round);
    void changed(const std::string& name, std::uint64_t round, node_change what);
    void ask_later();

    lock_queue& queue_;
    std::map<std::string, one, std::less<>> followed_;
    std::string nearest_;  // empty: none of them has to be readable
    std::uint64_t last_round_ = 0;
    back_off pauses_;
};

}  // namespace zkasio::lock_detail
