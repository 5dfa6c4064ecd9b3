#include <zkasio/queues/detail/item_list.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace zkasio::queue_detail {
namespace {

// A longer list is listed again once this share of it was claimed: each claim then pays for so many names.
constexpr std::size_t names_per_claim = 16;
constexpr std::chrono::seconds longest_age(1);

}  // namespace

void item_list::begin_listing() noexcept {
    free_.clear();
    is_old_ = false;
    next_return_ = boot_clock::time_point::max();
}

void item_list::list(std::vector<std::string> items, const std::vector<std::string>& taken,
                     boot_clock::time_point now) {
    const std::unordered_set<std::string> claimed(taken.begin(), taken.end());
    begin_listing();
    std::map<std::string, time_out> still_listed;
    std::erase_if(items, [&](const std::string& name) {
        const auto it = until_.find(name);
        if (it == until_.end()) return false;
        still_listed.insert(*it);
        if (it->second.until <= now) return false;
        next_return_ = std::min(next_return_, it->second.until);
        return true;
    });
    until_ = std::move(still_listed);
    std::erase_if(items, [&](const std::string& name) { return claimed.contains(name); });
    free_.assign(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    listed_ = free_.size();
    used_ = 0;
    when_ = now;
}

void item_list::forget() noexcept {
    free_.clear();
    is_old_ = true;
}

bool item_list::must_list(boot_clock::time_point now) const noexcept {
    const bool is_old = is_old_ || now >= next_return_;
    if (!is_old || free_.empty()) return is_old;
    return used_ * names_per_claim >= listed_ || now - when_ >= longest_age;
}

std::vector<std::string> item_list::first(std::size_t n) const {
    const auto end = free_.begin() + static_cast<std::ptrdiff_t>(std::min(n, free_.size()));
    return std::vector<std::string>(free_.begin(), end);
}

void item_list::remove(const std::string& name) {
    until_.erase(name);
    use(name);
}

void item_list::use(const std::string& name) {
    const auto it = std::find(free_.begin(), free_.end(), name);
    if (it == free_.end()) return;
    free_.erase(it);
    ++used_;
}

void item_list::leave_out(const std::string& name, std::size_t n) {
    const auto end = free_.begin() + static_cast<std::ptrdiff_t>(std::min(n, free_.size()));
    const auto from = std::find(free_.begin(), end, name);
    if (from == end) return;
    leave_out_next(static_cast<std::size_t>(from - free_.begin()), static_cast<std::size_t>(end - from));
}

void item_list::leave_out_next(std::size_t from, std::size_t n) { used_ += erase(from, n); }

// Not as used: else a process that steps aside would have to list before each claim.
void item_list::step_over(std::size_t n) { erase(0, n); }

void item_list::leave_out_until(const std::string& name, boot_clock::time_point until) {
    use(name);
    next_return_ = std::min(next_return_, until);
    until_[name].until = until;
}

bool item_list::refuse_until(const std::string& name, boot_clock::time_point until) {
    leave_out_until(name, until);
    return !std::exchange(until_[name].is_refused, true);
}

std::size_t item_list::erase(std::size_t from, std::size_t n) {
    from = std::min(from, free_.size());
    n = std::min(n, free_.size() - from);
    const auto first = free_.begin() + static_cast<std::ptrdiff_t>(from);
    free_.erase(first, first + static_cast<std::ptrdiff_t>(n));
    is_old_ = true;
    return n;
}

}  // namespace zkasio::queue_detail
