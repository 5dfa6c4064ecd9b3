#include <zkasio/locks/detail/local_slots.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>

#include <atomic>
#include <utility>

namespace zkasio::lock_detail {

class local_slots::right final : public local_right {
public:
    right(std::shared_ptr<local_slots> of, std::uint32_t number) : of_(std::move(of)), number_(number) {}
    right(const right&) = delete;
    right& operator=(const right&) = delete;
    ~right() override { release(); }

    void release() noexcept override {
        if (released_.exchange(true)) return;
        std::unique_lock lock(of_->mutex_);
        const auto it = of_->taken_.find(number_);
        const bool wanted = it->second;
        of_->taken_.erase(it);
        if (wanted) of_->change_.notify_all(std::move(lock));
    }

private:
    const std::shared_ptr<local_slots> of_;
    const std::uint32_t number_;
    std::atomic<bool> released_{false};
};

asio::awaitable<std::shared_ptr<local_slots>> local_slots::of(session on, std::string path) {
    const auto found = std::make_shared<std::shared_ptr<local_slots>>();
    const one_shot_event done = toolbox(on).make_one_shot_event();
    asio::dispatch(on.get_executor(), [on, path, found, done] {
        const auto make = [&] { return std::make_shared<local_slots>(on); };
        *found = std::static_pointer_cast<local_slots>(toolbox(on).local("local slots " + path, make));
        done.fire();
    });
    co_await wait_as(done, "acquire", path);
    co_return std::move(*found);
}

std::shared_ptr<local_right> local_slots::take(std::uint32_t number) {
    {
        const std::lock_guard lock(mutex_);
        const auto [it, free] = taken_.emplace(number, false);
        if (!free) {
            it->second = true;
            return nullptr;
        }
    }
    try {
        return std::make_shared<right>(shared_from_this(), number);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        taken_.erase(number);
        throw;
    }
}

void local_slots::want(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    taken_.at(number) = true;
}

local_slots::place::place(std::shared_ptr<local_slots> of)
    : of_(std::move(of)), number_([this] {
          const std::lock_guard lock(of_->mutex_);
          return of_->places_++;
      }()) {}

asio::awaitable<std::shared_ptr<slot_search>> local_slots::place::turn() { return wait_for_turn(of_, number_); }

asio::awaitable<std::shared_ptr<slot_search>> local_slots::place::wait_for_turn(std::shared_ptr<local_slots> of,
                                                                                std::uint64_t number) {
    std::optional<one_shot_event> wait;
    {
        const std::lock_guard lock(of->mutex_);
        if (of->turn_ && !of->over_) {
            wait.emplace(toolbox(of->on_).make_one_shot_event());
            of->waiting_.emplace(number, *wait);
        } else {
            of->turn_ = number;
        }
    }
    if (wait) co_await wait->wait();
    const std::lock_guard lock(of->mutex_);
    if (of->over_) throw error(of->over_, "acquire", {});
    co_return std::exchange(of->left_, nullptr);
}

void local_slots::place::pass_turn(std::shared_ptr<slot_search> left) noexcept {
    std::optional<one_shot_event> next;
    std::shared_ptr<slot_search> unread;
    {
        const std::lock_guard lock(of_->mutex_);
        of_->waiting_.erase(number_);
        if (of_->turn_ != number_) return;
        of_->turn_.reset();
        unread = std::exchange(of_->left_, nullptr);
        // What is left when nobody waits would be old when somebody comes.
        if (const auto first = of_->waiting_.begin(); first != of_->waiting_.end()) {
            of_->turn_ = first->first;
            next = std::move(first->second);
            of_->waiting_.erase(first);
            of_->left_ = std::move(left);
        }
    }
    if (next) next->fire();
}

void local_slots::session_over(std::error_code why) noexcept {
    std::map<std::uint64_t, one_shot_event> told;
    {
        const std::lock_guard lock(mutex_);
        over_ = why;
        told.swap(waiting_);
    }
    for (const auto& [number, wait] : told) wait.fire();
}

void local_slots::set_rest(std::uint32_t number, boot_clock::time_point until) {
    const std::lock_guard lock(mutex_);
    rests_[number] = until;
}

std::optional<boot_clock::duration> local_slots::rest_of(std::uint32_t number, boot_clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const auto it = rests_.find(number);
    if (it == rests_.end()) return std::nullopt;
    if (it->second > now) return it->second - now;
    rests_.erase(it);
    return std::nullopt;
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t local_slots::random() noexcept {
    std::uint64_t z;
    {
        const std::lock_guard lock(mutex_);
        z = random_ += 0x9e3779b97f4a7c15;
    }
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

}  // namespace zkasio::lock_detail
