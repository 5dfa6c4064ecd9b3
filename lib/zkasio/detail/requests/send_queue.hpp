#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <vector>

namespace zkasio::detail {

/// Which request is handed to the backend next. Knows them by their ids, and not whether they have ended meanwhile:
/// whoever asks skips those. Pure.
class send_queue {
public:
    using time_point = boot_clock::time_point;

    enum class lane {
        urgent,  ///< before everything else, and however many are under way: heartbeats
        again,   ///< was sent before: in front of what was asked for later, except during a pause after a refusal
        normal,  ///< as they come
    };

    void push(lane l, op_id id);
    /// The backend could not take it now: the next one of its lane.
    void put_back(lane l, op_id id);

    bool empty() const noexcept { return urgent_.empty() && again_.empty() && normal_.empty(); }
    std::size_t size() const noexcept { return urgent_.size() + again_.size() + normal_.size(); }
    /// How many are in lane::normal, those included that have ended meanwhile.
    std::size_t waiting() const noexcept { return normal_.size(); }
    bool has_again() const noexcept { return !again_.empty(); }

    /// Takes it out. Nothing: there is none that may be sent now.
    /// @param window_full only what is urgent goes.
    std::optional<op_id> next(bool window_full, time_point now);

    /// What is sent again after a refusal pauses. Whoever has had a node removed relies on the order: only a refusal
    /// may be overtaken, since it is not repeated at once, and nobody shall wait for that.
    void pause_again(time_point until) noexcept { again_not_before_ = until; }
    time_point again_not_before() const noexcept { return again_not_before_; }

    /// Calls `f(id)` for each in lane::normal, the oldest first.
    template <class F>
    void for_each_normal(F f) const {
        normal_.for_each(f);
    }
    /// The same for each in lane::again.
    template <class F>
    void for_each_again(F f) const {
        for (const op_id id : again_) f(id);
    }
    /// Drops one of lane::again.
    void drop_again(op_id id) noexcept { again_.erase(id); }
    /// Drops those of lane::normal for which `ended(id)`.
    template <class Ended>
    void sweep(Ended ended) {
        normal_.erase_if(ended);
    }
    /// Of a session that is over: those that are in no need of a connection by themselves.
    void drop_urgent_and_again() {
        urgent_.clear();
        again_.clear();
    }
    void clear() {
        drop_urgent_and_again();
        normal_.clear();
    }

private:
    // Keeps the memory that it has: a std::deque asks for some with every 64th request.
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
        }

    private:
        void drop_taken();

        std::vector<op_id> ids_;
        std::size_t first_ = 0;  // those before it have been taken out
    };

    std::deque<op_id> urgent_;
    std::set<op_id> again_;
    fifo normal_;
    time_point again_not_before_{};
};

}  // namespace zkasio::detail
