#include <zkasio/membership/detail/member_history.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace zkasio::membership_detail {
namespace {

using time_point = member_history::time_point;

time_point later(time_point t, member_history::duration d) {
    return d > time_point::max() - t ? time_point::max() : t + d;
}

}  // namespace

void member_history::see(const group_view& view, time_point now) {
    assert(now >= changed_);
    if (seen_ == view.members) return;
    seen_ = view.members;
    std::map<std::string, member> all;
    for (const member_info& m : view.members) {
        const auto known = members_.find(m.path);
        all.emplace(m.path, member{m.id, known == members_.end() ? now : known->second.since});
    }
    members_ = std::move(all);
    if (std::exchange(divided_, false)) first_ = now;
    changed_ = now;
}

time_point member_history::settled_at() const { return later(changed_, settle_); }

time_point member_history::due() const { return std::min(settled_at(), later(first_, at_most_)); }

bool member_history::settled_at(time_point now) const { return now >= settled_at(); }

std::vector<std::string> member_history::members_at(time_point now) const {
    const bool all = settled_at(now);
    std::vector<std::string> ids;
    for (const auto& [path, m] : members_)
        if (all || later(m.since, settle_) <= now) ids.push_back(m.id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

void member_history::tried(time_point now) {
    assert(now >= due());
    divided_ = settled_at(now);
    first_ = now;
}

}  // namespace zkasio::membership_detail
