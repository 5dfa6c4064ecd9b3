#include <zkasio/locks/detail/local_slots.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cassert>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

void local_slots::right::about_to_release() noexcept {
    const std::lock_guard lock(of_->mutex_);
    leaving_ = true;
}

void local_slots::right::not_about_to_release() noexcept {
    std::unique_lock lock(of_->mutex_);
    if (std::exchange(leaving_, false) && wanted_) of_->change_.notify_all(std::move(lock));
}

void local_slots::right::release() noexcept {
    std::unique_lock lock(of_->mutex_);
    if (std::exchange(released_, true)) return;
    assert(of_->taken_.at(number_) == this);
    of_->taken_.erase(number_);
    if (wanted_) of_->change_.notify_all(std::move(lock));
}

asio::awaitable<std::shared_ptr<local_slots>> local_slots::of(session on, std::string path) {
    return asked_on_strand(on, "acquire", path, [on, path] {
        const auto make = [&] { return std::make_shared<local_slots>(on); };
        return std::static_pointer_cast<local_slots>(toolbox(on).local("local slots " + path, make));
    });
}

std::shared_ptr<local_slots::right> local_slots::take(std::uint32_t number) {
    const auto taken = std::make_shared<right>(shared_from_this(), number);
    const std::lock_guard lock(mutex_);
    const auto [it, free] = taken_.emplace(number, taken.get());
    if (!free) {
        it->second->wanted_ = true;
        return nullptr;
    }
    taken->released_ = false;
    return taken;
}

void local_slots::want(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    taken_.at(number)->wanted_ = true;
}

bool local_slots::want_released(std::uint32_t n) {
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (auto it = taken_.begin(); it != taken_.lower_bound(n); ++it)
        if (it->second->leaving_) any = it->second->wanted_ = true;
    return any;
}

bool local_slots::all_taken(std::uint32_t n) const {
    return taken_.size() >= n && std::distance(taken_.begin(), taken_.lower_bound(n)) == std::ptrdiff_t(n);
}

bool local_slots::has_all(std::uint32_t n) {
    const std::lock_guard lock(mutex_);
    return all_taken(n);
}

bool local_slots::want_all(std::uint32_t n) {
    const std::lock_guard lock(mutex_);
    if (over_) throw error(over_, "acquire", {});
    if (!all_taken(n)) return false;
    for (auto it = taken_.begin(); it != taken_.lower_bound(n); ++it) it->second->wanted_ = true;
    return true;
}

local_slots::place::place(std::shared_ptr<local_slots> of, line_key in) : of_(std::move(of)) {
    const std::lock_guard lock(of_->mutex_);
    in_ = &of_->lines_[in];
    number_ = of_->places_++;
}

asio::awaitable<std::shared_ptr<slot_search>> local_slots::place::turn() { return wait_for_turn(of_, *in_, number_); }

asio::awaitable<std::shared_ptr<slot_search>> local_slots::place::wait_for_turn(std::shared_ptr<local_slots> of,
                                                                                line& in, std::uint64_t number) {
    std::optional<one_shot_event> wait;
    {
        const std::lock_guard lock(of->mutex_);
        if (in.turn && in.turn != number && !of->over_) {
            wait.emplace(toolbox(of->on_).make_one_shot_event());
            in.waiting.emplace(number, *wait);
        } else {
            assert(in.turn == number || in.waiting.empty() || of->over_);
            in.turn = number;
        }
    }
    if (wait) co_await wait->wait();
    const std::lock_guard lock(of->mutex_);
    if (of->over_) throw error(of->over_, "acquire", {});
    assert(in.turn == number);
    co_return std::exchange(in.left, nullptr);
}

void local_slots::place::pass_turn(std::shared_ptr<slot_search> left) noexcept {
    std::optional<one_shot_event> next;
    std::shared_ptr<slot_search> unread;
    {
        const std::lock_guard lock(of_->mutex_);
        in_->waiting.erase(number_);
        if (in_->turn != number_) return;
        in_->turn.reset();
        unread = std::exchange(in_->left, nullptr);
        // What is left when nobody waits would be old when somebody comes.
        if (const auto first = in_->waiting.begin(); first != in_->waiting.end()) {
            in_->turn = first->first;
            next = std::move(first->second);
            in_->waiting.erase(first);
            in_->left = std::move(left);
        }
    }
    if (next) next->fire();
}

void local_slots::session_over(std::error_code why) noexcept {
    std::vector<one_shot_event> told;
    std::unique_lock lock(mutex_);
    over_ = why;
    for (auto& [key, in] : lines_)
        for (auto& [number, wait] : std::exchange(in.waiting, {})) told.push_back(std::move(wait));
    change_.notify_all(std::move(lock));
    for (const one_shot_event& wait : told) wait.fire();
}

bool local_slots::warns_of_persistent_node() noexcept {
    const std::lock_guard lock(mutex_);
    return !std::exchange(warned_, true);
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
