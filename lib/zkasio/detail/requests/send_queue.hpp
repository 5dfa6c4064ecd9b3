#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <cassert>
#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <set>
#include <vector>

namespace zkasio::detail {

/// Decides which request is handed to the backend next. The queue knows the requests by their ids, and not whether they
/// have ended: the caller skips ended requests. Pure.
class send_queue {
public:
    using time_point = boot_clock::time_point;

    enum class lane {
        urgent,  ///< before all others, even if the window is full: heartbeats
        again,   ///< was sent before: in front of later requests, except during a pause after a server's answer
        late,    ///< connections have ended with such a request: after a pause, of whatever length
        normal,  ///< in the order of arrival
    };

    void push(lane l, op_id id);
    /// The backend could not take the request now: the request becomes the next one of its lane.
    void put_back(lane l, op_id id);

    bool empty() const noexcept { return urgent_.empty() && again_.empty() && late_.empty() && normal_.empty(); }
    std::size_t size() const noexcept { return urgent_.size() + again_.size() + late_.size() + normal_.size(); }
    /// The number of requests in lane::normal, including ended ones.
    std::size_t waiting() const noexcept { return normal_.size(); }

    /// Takes out the next request. Nothing: there is no request that may be sent now.
    /// @param window_full only urgent requests may be sent.
    std::optional<op_id> next(bool window_full, time_point now);

    /// Pauses lane::again after an answer that leads to a repetition. Callers rely on the order of a removal and later
    /// requests: only an answered request may be overtaken, so that later requests do not wait for its pause.
    void pause_again(time_point until) noexcept { again_not_before_ = until; }
    time_point again_not_before() const noexcept { return again_not_before_; }
    /// Pauses lane::late: whatever comes after its requests overtakes them.
    void pause_late(time_point until) noexcept { late_not_before_ = until; }
    bool has_late() const noexcept { return !late_.empty(); }
    /// Whether a lane has requests whose pause is over.
    bool is_pause_over(time_point now) const noexcept {
        return (!again_.empty() && now >= again_not_before_) || (!late_.empty() && now >= late_not_before_);
    }
    /// When a paused lane goes on; time_point::max(): none of those with requests pauses.
    time_point next_end_of_pause(time_point now) const noexcept;

    /// Calls `f(id)` for each in lane::normal, the oldest first.
    template <class F>
    void for_each_normal(F f) const {
        normal_.for_each(f);
    }
    /// Calls `f(id)` for each in lane::again.
    template <class F>
    void for_each_again(F f) const {
        for (const op_id id : again_) f(id);
    }
    /// Drops this request of lane::again.
    void drop_again(op_id id) noexcept { again_.erase(id); }
    /// Drops the requests of lane::normal for which `ended(id)`.
    template <class Ended>
    void sweep(Ended ended) {
        normal_.erase_if(ended);
    }
    /// Drops requests of a session that is over. lane::normal stays: it may contain waits for a connection.
    void drop_all_but_normal() {
        urgent_.clear();
        again_.clear();
        late_.clear();
    }
    void clear() {
        drop_all_but_normal();
        normal_.clear();
    }

private:
    // Reuses its memory: a std::deque allocates with every 64th request.
    class fifo {
    public:
        bool empty() const noexcept { return first_ == ids_.size(); }
        std::size_t size() const noexcept { return ids_.size() - first_; }
        void push_back(op_id id);
        void push_front(op_id id);
        op_id pop_front() noexcept;
        void clear() noexcept;
        template <class F>
        void for_each(F& f) const {
            for (std::size_t i = first_; i < ids_.size(); ++i) f(ids_[i]);
        }
        template <class Condition>
        void erase_if(Condition& c) {
            drop_taken();
            std::erase_if(ids_, c);
            check();
        }

    private:
        void drop_taken();
        void check() const noexcept { assert(first_ <= ids_.size()); }

        std::vector<op_id> ids_;
        std::size_t first_ = 0;  // the ids before this index have been taken out
    };

    std::list<op_id> urgent_;  // few, and a std::deque has memory from the start
    std::set<op_id> again_, late_;
    fifo normal_;
    time_point again_not_before_{}, late_not_before_{};
};

}  // namespace zkasio::detail
