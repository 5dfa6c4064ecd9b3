#include <zkasio/membership/detail/division.hpp>

#include <zkasio/recipe/stable_hash.hpp>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <map>
#include <utility>

namespace zkasio::membership_detail {

using detail::hash_of;
using detail::mixed;

namespace {

// What follows differs in another version of the format.
constexpr std::string_view plan_marker = "zkasio partitioner 1 ";

std::uint64_t digest_of(const std::vector<std::string>& partitions) noexcept {
    std::uint64_t digest = partitions.size();
    for (const std::string& name : partitions) digest = mixed(digest ^ hash_of(name));
    return digest;
}

// The number at the beginning of `text`, which ends with a space; both are taken from `text`.
template <class Number>
bool take_number(std::string_view& text, Number& number, int base) {
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, number, base);
    if (failed != std::errc() || at == end || *at != ' ') return false;
    text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
    return true;
}

std::string in_hex(std::uint64_t number) {
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
    return std::string(digits, end);
}

}  // namespace

member_plan plan_of(const partitioner_options& how, const std::vector<std::string>& partitions) {
    member_plan plan;
    plan.assignment = how.assignment_name();
    plan.partitions = partitions.size();
    plan.digest = digest_of(partitions);
    return plan;
}

std::string to_text(const member_plan& plan) {
    std::string text(plan_marker);
    text.append(std::to_string(plan.partitions)).append(" ").append(in_hex(plan.digest)).append(" ");
    return text.append(plan.assignment);
}

std::optional<member_plan> parse_plan(std::string_view data) {
    if (!data.starts_with(plan_marker)) return std::nullopt;
    data.remove_prefix(plan_marker.size());
    member_plan plan;
    if (!take_number(data, plan.partitions, 10) || !take_number(data, plan.digest, 16)) return std::nullopt;
    plan.assignment = data;
    return plan;
}

namespace {

// D2.
partition_assignment agreed_assignment(const partitioner_options& how, const member_plan& mine,
                                       const std::vector<planning_member>& members) {
    const bool all_have_it = std::all_of(members.begin(), members.end(), [&](const planning_member& m) {
        return m.plan && m.plan->assignment == mine.assignment;
    });
    return mine.assignment.empty() || all_have_it ? how.assignment() : &assign_in_turn;
}

// Whether a member with this plan divides as one with the plan `mine` does.
bool divides_alike(const member_plan& plan, const member_plan& mine) noexcept {
    return plan.digest == mine.digest && plan.partitions == mine.partitions &&
           plan.assignment.empty() == mine.assignment.empty();
}

std::string listed(const std::vector<std::string>& ids) {
    constexpr std::size_t most = 10;
    std::string text;
    for (std::size_t i = 0; i < std::min(ids.size(), most); ++i) text.append(i > 0 ? ", " : "").append(ids[i]);
    if (ids.size() > most) text.append(" and ").append(std::to_string(ids.size() - most)).append(" more");
    return text;
}

// "" unless there are several plans.
std::string difference_between(const std::vector<planning_member>& members) {
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::string>> by_list;
    std::map<bool, std::vector<std::string>> by_name;  // whether the assignment has one
    for (const planning_member& m : members) {
        if (!m.plan) continue;
        by_list[{m.plan->partitions, m.plan->digest}].push_back(m.id);
        by_name[!m.plan->assignment.empty()].push_back(m.id);
    }
    std::string text;
    if (by_list.size() > 1) {
        for (const auto& [list, ids] : by_list)
            text += (text.empty() ? "" : "; ") + std::to_string(list.first) + " partitions: " + listed(ids);
        text.insert(0, "the lists of partitions differ: ");
    }
    if (by_name.size() > 1)
        text += (text.empty() ? "" : "; ") + std::string("these have assignments without a name, and others do not: ") +
                listed(by_name[false]);
    return text;
}

}  // namespace

division divide(const partitioner_options& how, const std::vector<planning_member>& members,
                const std::vector<std::string>& partitions) {
    const member_plan mine = plan_of(how, partitions);
    const partition_assignment assign = agreed_assignment(how, mine, members);
    std::vector<std::string> all, alike;
    for (const planning_member& m : members) {
        all.push_back(m.id);
        if (m.plan && divides_alike(*m.plan, mine)) alike.push_back(m.id);
    }
    division d;
    d.assigned = assign(how.id(), all, partitions);
    d.difference = difference_between(members);
    if (d.difference.empty()) return d;
    for (std::string& name : assign(how.id(), alike, partitions))
        if (std::binary_search(partitions.begin(), partitions.end(), name)) d.stands_in_for.insert(std::move(name));
    for (const std::string& name : d.assigned) d.stands_in_for.erase(name);
    for (const planning_member& m : members) {  // D4
        if (m.plan) continue;
        for (const std::string& name : assign(m.id, all, partitions)) d.stands_in_for.erase(name);
    }
    return d;
}

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
