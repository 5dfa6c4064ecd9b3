#include <zkasio/detail/requests/refused_removals.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/retry_policy.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::detail {

std::string refused_removals::name_of(const removal& r) { return std::string(parent_path(r.path)); }

void refused_removals::pause(directory& d, time_point now, double random) {
    static const retry_policy pace = retry_policy::exponential(std::chrono::seconds(1), std::chrono::seconds(30));
    d.not_before = now + pace.pause(std::max(d.refusals, 1) - 1, random);
}

void refused_removals::take_place(directory& d) {
    if (d.ticket != 0) order_.erase({d.not_before, d.ticket});
    d.ticket = 0;
}

// To be called when one of the directory's members has changed, between take_place() and now.
void refused_removals::set_place(directory& d) {
    assert(d.ticket == 0);
    if (d.waiting.empty() || (d.refusals > 0 && d.under_way > 0)) return;
    d.ticket = ++last_ticket_;
    order_.emplace(std::pair(d.not_before, d.ticket), &d);
}

void refused_removals::add(std::string path, attempt ask, time_point now, double random) {
    removal r{std::move(path), std::move(ask), epoch_};
    directory& d = of(r);
    take_place(d);
    if (d.refusals == 0) {
        d.refusals = 1;
        pause(d, now, random);
    }
    d.waiting.push_back(std::move(r));
    set_place(d);
}

std::optional<refused_removals::removal> refused_removals::next(time_point now) {
    if (due() > now) return std::nullopt;
    directory& d = *order_.begin()->second;
    take_place(d);
    if (d.refusals > 0) no_probe_before_ = now + least_gap;
    removal r = std::move(d.waiting.front());
    d.waiting.pop_front();
    ++d.under_way;
    ++under_way_;
    set_place(d);
    return r;
}

void refused_removals::ended(removal r, std::error_code how, time_point now, double random) {
    if (r.epoch != epoch_) return;
    const auto at = directories_.find(name_of(r));
    directory& d = at->second;
    take_place(d);
    --d.under_way;
    --under_way_;
    const bool refused = how == zk_errc::no_auth;
    if (refused || how == condition::retryable) {
        // Of those that were asked for together when one was not refused, the last one counts.
        if (refused) d.refusals = d.under_way > 0 ? std::max(d.refusals, 1) : std::min(d.refusals + 1, 1000);
        pause(d, now, random);
        d.waiting.push_front(std::move(r));
    } else {
        d.refusals = 0;
        d.not_before = {};
    }
    set_place(d);
    if (d.waiting.empty() && d.under_way == 0) directories_.erase(at);
}

refused_removals::time_point refused_removals::due() const noexcept {
    if (order_.empty() || under_way_ >= most_at_once) return time_point::max();
    const auto& [place, first] = *order_.begin();
    return first->refusals > 0 ? std::max(place.first, no_probe_before_) : place.first;
}

void refused_removals::hurry(time_point now) {
    for (auto& [name, d] : directories_) {
        take_place(d);
        if (d.refusals > 0) d.refusals = 1;
        d.not_before = std::min(d.not_before, now);
        set_place(d);
    }
}

void refused_removals::clear() noexcept {
    ++epoch_;
    order_.clear();
    under_way_ = 0;
    no_probe_before_ = {};
    const directories gone = std::exchange(directories_, {});  // an attempt may own whatever calls back
}

}  // namespace zkasio::detail
