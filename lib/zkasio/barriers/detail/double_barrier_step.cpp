#include <zkasio/barriers/detail/double_barrier_step.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace zkasio::barrier_detail {

barrier_children::barrier_children(std::vector<std::string> names) : members(std::move(names)) {
    ready = std::erase(members, ready_name) > 0;
    std::sort(members.begin(), members.end());
}

bool barrier_children::has(std::string_view member) const noexcept {
    return std::binary_search(members.begin(), members.end(), member);
}

namespace {

std::size_t count_older(const std::vector<other_member>& members, std::int64_t than) {
    return static_cast<std::size_t>(
        std::count_if(members.begin(), members.end(), [&](const other_member& m) { return m.born < than; }));
}

bool is_of_round(const other_member& member, std::int64_t ready_since) noexcept {
    return member.joined || member.born < ready_since;
}

// uuid4().hex
bool is_of_kazoo(const std::string& member) noexcept {
    return member.size() == 32 && member.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

enter_step next_enter_step(const enter_view& seen, std::size_t members, bool exactly) {
    if (!seen.born || !seen.children.has(seen.own)) return enter_step::create_own;
    const std::size_t count = seen.children.members.size();
    if (exactly && count > members) {
        if (!seen.others) return enter_step::read_others;
        if (count_older(*seen.others, *seen.born) >= members) return enter_step::refuse;
    }
    if (seen.joined) return enter_step::pass;
    // B1: enough members stood at the same time as this one.
    if (seen.ready_was_created || (seen.ready_since && *seen.ready_since > *seen.born)) return enter_step::pass;
    // B2: `ready` belongs to a round that others have begun, or is left over.
    if (seen.ready_since && seen.children.ready) {
        if (!seen.others) return enter_step::read_others;
        return member_of_round(seen).empty() ? enter_step::remove_left_over : enter_step::join;
    }
    if (seen.children.ready) return enter_step::pass;                       // created since it was looked for
    return count >= members ? enter_step::create_ready : enter_step::wait;  // B3: or the last to come creates it
}

std::string member_of_round(const enter_view& seen) {
    for (const other_member& member : *seen.others)
        if (is_of_round(member, *seen.ready_since)) return member.name;
    return {};
}

std::vector<std::string> members_inside(const std::vector<other_member>& others,
                                        std::optional<std::int64_t> ready_since) {
    std::vector<std::string> inside;
    for (const other_member& member : others)
        if (!ready_since || is_of_round(member, *ready_since)) inside.push_back(member.name);
    return inside;
}

leave_step next_leave_step(const barrier_children& now, const std::string& own,
                           const std::vector<std::string>& inside) {
    using removal = leave_step::removal;
    std::vector<std::string> others;
    std::copy_if(now.members.begin(), now.members.end(), std::back_inserter(others), [&](const std::string& member) {
        return member != own && std::find(inside.begin(), inside.end(), member) != inside.end();
    });
    const bool in = now.has(own);
    leave_step step;
    if (others.empty()) {
        // B4: the last member removes `ready` together with its node.
        if (in) step.first = now.ready && now.members.size() == 1 ? removal::own_and_ready : removal::own;
        return step;
    }
    if (!in) {
        step.then_wait_for = others.front();
    } else if (own < others.front()) {
        step.then_wait_for = others.back();  // B5: the lowest keeps its node
    } else {
        const bool only_kazoo = std::all_of(now.members.begin(), now.members.end(), [&](const std::string& member) {
            return member == own || is_of_kazoo(member);
        });
        // B6: the lowest member of kazoo also waits for `ready` to go.
        step.first = only_kazoo && now.ready ? removal::own_and_ready : removal::own;
        step.then_wait_for = others.front();
    }
    return step;
}

}  // namespace zkasio::barrier_detail
