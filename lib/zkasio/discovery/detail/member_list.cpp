#include <zkasio/discovery/detail/member_list.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

namespace zkasio::discovery_detail {

std::string service_path(const std::string& base, const std::string& name) {
    require_path("discovery", base);
    std::string path = join_path(base, name);
    std::string problem = path_problem(path);
    if (name.empty() || name.find('/') != std::string::npos) problem = "a name is one part of a path";
    if (!problem.empty()) throw error(errc::invalid_path, "discovery", path, problem);
    return path;
}

// Keeps every sum of weights finite.
constexpr double most_weight = 1e100;

member::member(std::string n, service_instance i, double w, std::shared_ptr<incarnation> c)
    : node(std::move(n)),
      instance(std::move(i)),
      weight(std::isfinite(w) && w > 0 ? std::min(w, most_weight) : 0),
      hash(hash_of(node)),
      counted(std::move(c)) {}

void incarnation::report_failure() noexcept {
    const std::chrono::milliseconds now = policy.now();
    std::uint64_t word = failures.load(std::memory_order_relaxed);
    while (!failures.compare_exchange_weak(word, failure_record(word).after_failure(policy, now).word(),
                                           std::memory_order_relaxed)) {
    }
}

member_list::chunk_ptr member_list::chunk_of(std::vector<member_ptr> members) {
    assert(!members.empty());
    auto made = std::make_shared<chunk>();
    for (const member_ptr& m : members) made->weight += m->weight;
    made->members = std::move(members);
    return made;
}

member_list::member_list(const std::vector<member_ptr>& all) {
    for (std::size_t begin = 0; begin < all.size(); begin += most) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto to = from + static_cast<std::ptrdiff_t>(std::min(most, all.size() - begin));
        chunks_.push_back(part{chunk_of(std::vector<member_ptr>(from, to)), 0, 0});
    }
    sum_up(0);
}

// Updates the sums of part `from`, which has changed, and of the parts behind it.
void member_list::sum_up(std::size_t from) noexcept {
    for (std::size_t p = from; p < chunks_.size(); ++p) {
        chunks_[p].end = begin_of(p) + chunks_[p].of->members.size();
        chunks_[p].weight_up_to = weight_before(p) + chunks_[p].of->weight;
    }
}

std::size_t member_list::part_with(std::size_t i) const noexcept {
    const auto found = std::partition_point(chunks_.begin(), chunks_.end(), [i](const part& p) { return p.end <= i; });
    return static_cast<std::size_t>(found - chunks_.begin());
}

const member_ptr& member_list::operator[](std::size_t i) const noexcept {
    assert(i < size());
    const std::size_t p = part_with(i);
    return chunks_[p].of->members[i - begin_of(p)];
}

std::size_t member_list::by_weight(double sum) const noexcept {
    if (weight() <= 0) return size();
    auto found =
        std::partition_point(chunks_.begin(), chunks_.end(), [sum](const part& p) { return p.weight_up_to <= sum; });
    // If rounding has brought `sum` up to the sum of all weights: the last part with a weight.
    while (found == chunks_.end() || found->of->weight <= 0) --found;
    const auto p = static_cast<std::size_t>(found - chunks_.begin());
    const std::vector<member_ptr>& members = found->of->members;
    double up_to = weight_before(p);
    std::size_t last = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (members[i]->weight <= 0) continue;
        last = i;
        up_to += members[i]->weight;
        if (up_to > sum) break;
    }
    return begin_of(p) + last;
}

// The last part whose first name is not behind `node`; if there is none, the first part.
std::size_t member_list::part_for(std::string_view node) const noexcept {
    const auto behind = std::partition_point(chunks_.begin(), chunks_.end(),
                                             [node](const part& p) { return p.of->members.front()->node <= node; });
    return behind == chunks_.begin() ? 0 : static_cast<std::size_t>(behind - chunks_.begin()) - 1;
}

namespace {

std::ptrdiff_t place_of(const std::vector<member_ptr>& members, std::string_view node) {
    const auto found =
        std::partition_point(members.begin(), members.end(), [node](const member_ptr& m) { return m->node < node; });
    return found - members.begin();
}

bool is_at(const std::vector<member_ptr>& members, std::ptrdiff_t place, std::string_view node) {
    return place < std::ssize(members) && members[static_cast<std::size_t>(place)]->node == node;
}

}  // namespace

void member_list::set(member_ptr m) {
    if (chunks_.empty()) {
        chunks_.push_back(part{chunk_of({std::move(m)}), 0, 0});
        return sum_up(0);
    }
    const std::size_t p = part_for(m->node);
    std::vector<member_ptr> members = chunks_[p].of->members;
    const std::ptrdiff_t place = place_of(members, m->node);
    if (is_at(members, place, m->node)) {
        member_ptr& replaced = members[static_cast<std::size_t>(place)];
        const bool same_weight = replaced->weight == m->weight;
        replaced = std::move(m);
        if (same_weight) {  // so the sums of all parts stay as they are
            chunks_[p].of = chunk_of(std::move(members));
            return;
        }
    } else {
        members.insert(members.begin() + place, std::move(m));
        if (members.size() > most) {
            // Names are often added in order: then the full chunk stays full, and the next chunk begins.
            const std::ptrdiff_t kept = place == std::ssize(members) - 1 ? place : std::ssize(members) / 2;
            std::vector<member_ptr> rest(members.begin() + kept, members.end());
            members.resize(static_cast<std::size_t>(kept));
            chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(p) + 1, part{chunk_of(std::move(rest)), 0, 0});
        }
    }
    chunks_[p].of = chunk_of(std::move(members));
    sum_up(p);
}

void member_list::erase(std::string_view node) {
    if (chunks_.empty()) return;
    const std::size_t p = part_for(node);
    const std::ptrdiff_t place = place_of(chunks_[p].of->members, node);
    if (!is_at(chunks_[p].of->members, place, node)) return;
    std::vector<member_ptr> members = chunks_[p].of->members;
    members.erase(members.begin() + place);
    if (members.empty())
        chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(p));
    else
        chunks_[p].of = chunk_of(std::move(members));
    sum_up(p);
}

}  // namespace zkasio::discovery_detail
