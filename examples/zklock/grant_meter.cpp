#include "grant_meter.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <string_view>

namespace zklock {
namespace {

using namespace std::chrono_literals;

constexpr auto rate_window = 10s;

// The number that the server has given to a sequential node.
std::optional<std::int64_t> number_of(std::string_view path) {
    path.remove_prefix(path.find_last_not_of("0123456789") + 1);  // npos + 1 is 0
    std::int64_t number = 0;
    if (path.size() != 10 || std::from_chars(path.data(), path.data() + path.size(), number).ec != std::errc())
        return std::nullopt;
    return number;
}

std::chrono::milliseconds whole_ms(zkasio::boot_clock::duration d) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(d);
}

}  // namespace

// A server counts creates in the cversion of a node, and reports it with the removals added: DataNode.copyStat().
node_counts counts_of(const zkasio::node_stat& directory) noexcept {
    return {(std::int64_t{directory.cversion} + directory.num_children) / 2, directory.num_children, directory.czxid};
}

void grant_meter::look(lock_view& v, const std::optional<node_counts>& counted, time_point now) {
    if (!looked_) begin_ = now;
    const bool is_another = counted && counted->directory != directory_;
    if (is_another) directory_ = counted->directory;
    if (is_another && looked_) {
        created_ = 0;
        waiting_.clear();
        if (leases_granted_) leases_granted_ = 0;
    }
    const std::int64_t granted = v.kind == directory_kind::semaphore
                                     ? (counted ? granted_in_leases(v, *counted) : 0)
                                     : granted_in_queue(v, counted ? counted->created : 0);
    if (looked_) grants_ += granted;
    note_holders(v, now);
    v.grants = rate(now);
    looked_ = true;
    missed_ = false;
}

std::int64_t grant_meter::granted_in_queue(const lock_view& v, std::int64_t created) {
    std::set<std::int64_t> waiting, exclusive;
    std::int64_t holding_new = 0;
    for (const contender& c : v.contenders) {
        const auto number = number_of(c.path);
        if (number) created = std::max(created, *number + 1);
        if (number && !c.holds) waiting.insert(*number);
        if (c.holds && c.side == zkasio::lock_kind::exclusive) exclusive.insert(c.token);
        if (!number && c.holds && !holders_.contains(c.token)) ++holding_new;  // a lock on one node
    }
    if (created < created_) created_ = 0;  // another directory of the same name, of which `counted` does not know yet
    const bool same_holder = std::any_of(exclusive.begin(), exclusive.end(),
                                         [this](std::int64_t token) { return exclusive_.contains(token); });
    const auto gone = [&](std::int64_t number) { return !waiting.contains(number); };
    const std::int64_t left_queue = std::count_if(waiting_.begin(), waiting_.end(), gone);
    const std::int64_t new_in_queue = std::distance(waiting.lower_bound(created_), waiting.end());
    const std::int64_t granted = same_holder ? 0 : left_queue + (created - created_) - new_in_queue + holding_new;
    created_ = created;
    waiting_ = std::move(waiting);
    exclusive_ = std::move(exclusive);
    return std::max<std::int64_t>(granted, 0);
}

// Leases above the permits are of contenders that still wait. What was counted before `v` was read may lack a grant,
// which the next look adds.
std::int64_t grant_meter::granted_in_leases(const lock_view& v, const node_counts& counted) {
    const auto holders = static_cast<std::int64_t>(v.holders().size());
    const std::int64_t total = counted.created - std::max<std::int64_t>(counted.present - holders, 0);
    const bool known = leases_granted_ && counted.created >= created_;
    created_ = counted.created;
    const std::int64_t before = known ? *leases_granted_ : total;
    leases_granted_ = std::max(before, total);
    return *leases_granted_ - before;
}

void grant_meter::note_holders(lock_view& v, time_point now) {
    std::map<std::int64_t, holding> holders;
    for (contender& c : v.contenders) {
        if (!c.holds) continue;
        const auto known = holders_.find(c.token);
        const holding h = known != holders_.end() ? known->second : holding{now, !looked_ || missed_};
        holders.emplace(c.token, h);
        c.held = whole_ms(now - h.since);
        c.held_at_least = h.at_least;
    }
    holders_ = std::move(holders);
}

grant_rate grant_meter::rate(time_point now) {
    recent_.emplace_back(now, grants_);
    while (recent_.size() > 2 && recent_[1].first <= now - rate_window) recent_.pop_front();
    const auto& [then, grants_then] = recent_.front();
    const std::chrono::duration<double> took = std::max<zkasio::boot_clock::duration>(now - then, 1s);
    return {grants_, static_cast<double>(grants_ - grants_then) / took.count(), whole_ms(now - begin_)};
}

}  // namespace zklock
