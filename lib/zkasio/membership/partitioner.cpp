#include <zkasio/membership/partitioner.hpp>

#include <zkasio/error.hpp>
#include <zkasio/membership/detail/partition_table.hpp>
#include <zkasio/membership/detail/partition_work.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/stable_hash.hpp>

#include <asio/ip/host_name.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>

namespace zkasio {

using detail::hash_of;
using detail::mixed;

std::vector<std::string> assign_in_turn(const std::string& me, const std::vector<std::string>& members,
                                        const std::vector<std::string>& partitions) {
    std::vector<std::string> mine;
    const auto found = std::find(members.begin(), members.end(), me);
    if (found == members.end()) return mine;
    for (auto i = static_cast<std::size_t>(found - members.begin()); i < partitions.size(); i += members.size())
        mine.push_back(partitions[i]);
    return mine;
}

namespace {

// The assignment of partitions to members, in the order of the numbers of their pairs.
class rendezvous {
public:
    rendezvous(const std::vector<std::string>& members, const std::vector<std::string>& partitions)
        : share_(partitions.size() / members.size()),
          larger_shares_(partitions.size() % members.size()),
          taken_(members.size()),
          owners_(partitions.size()) {
        for (const std::string& m : members) members_.push_back(hash_of(m));
        for (const std::string& p : partitions) partitions_.push_back(mixed(hash_of(p)));
        // The best pair of each partition. If its member has no room when its turn comes, the next best one follows.
        for (std::size_t p = 0; p < partitions.size(); ++p) best_.push(best_pair_of(p));
        while (!best_.empty()) {
            const pair next = best_.top();
            best_.pop();
            if (has_room(next.member))
                take(next);
            else
                best_.push(best_pair_of(next.partition));
        }
    }

    std::size_t owner_of(std::size_t partition) const { return owners_[partition]; }

private:
    struct pair {
        std::uint64_t number;
        std::size_t partition, member;
        bool operator<(const pair& other) const noexcept {
            return std::tie(number, other.partition, other.member) < std::tie(other.number, partition, member);
        }
    };

    bool has_room(std::size_t member) const noexcept {
        return taken_[member] < share_ || (taken_[member] == share_ && larger_shares_ > 0);
    }
    pair best_pair_of(std::size_t partition) const noexcept {
        pair best{0, partition, members_.size()};
        for (std::size_t m = 0; m < members_.size(); ++m) {
            if (!has_room(m)) continue;
            const pair other{mixed(members_[m] ^ partitions_[partition]), partition, m};
            if (best.member == members_.size() || best < other) best = other;
        }
        return best;
    }
    void take(const pair& p) noexcept {
        if (taken_[p.member]++ == share_) --larger_shares_;
        owners_[p.partition] = p.member;
    }

    std::vector<std::uint64_t> members_, partitions_;  // their hashes
    const std::size_t share_;
    std::size_t larger_shares_;        // how many members may still have one partition more than `share_`
    std::vector<std::size_t> taken_;   // by member
    std::vector<std::size_t> owners_;  // by partition
    std::priority_queue<pair> best_;
};

}  // namespace

std::vector<std::string> assign_by_rendezvous(const std::string& me, const std::vector<std::string>& members,
                                              const std::vector<std::string>& partitions) {
    std::vector<std::string> mine, ids(members);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const auto found = std::find(ids.begin(), ids.end(), me);
    if (found == ids.end()) return mine;
    const rendezvous all(ids, partitions);
    for (std::size_t p = 0; p < partitions.size(); ++p)
        if (all.owner_of(p) == static_cast<std::size_t>(found - ids.begin())) mine.push_back(partitions[p]);
    return mine;
}

partitioner_options::partitioner_options() {
    assignment(&assign_by_rendezvous);
    std::error_code ignored;
    id_ = asio::ip::host_name(ignored) + '-' + std::to_string(::getpid()) + '-' + new_protection_id().substr(0, 8);
}

namespace {

std::chrono::nanoseconds checked_time(std::chrono::nanoseconds t, const char* option) {
    if (t < std::chrono::nanoseconds(0))
        throw error(errc::invalid_argument, option, {}, "the time must not be negative");
    return t;
}

}  // namespace

namespace {

std::string known_name_of(const partition_assignment& f) {
    using function = std::vector<std::string>(const std::string&, const std::vector<std::string>&,
                                              const std::vector<std::string>&);
    function* const* const known = f.target<function*>();
    if (!known) return {};
    return *known == &assign_by_rendezvous ? "rendezvous" : *known == &assign_in_turn ? "in turn" : "";
}

}  // namespace

partitioner_options& partitioner_options::assignment(partition_assignment f, std::string name) {
    constexpr std::size_t longest_name = 256;
    if (name.size() > longest_name) throw error(errc::invalid_argument, "assignment", {}, "the name is too long");
    if (name.empty()) name = known_name_of(f);
    assignment_ = std::move(f);
    assignment_name_ = std::move(name);
    return *this;
}

partitioner_options& partitioner_options::settle(any_duration t) {
    settle_ = checked_time(t, "settle");
    return *this;
}

partitioner_options& partitioner_options::settle_at_most(any_duration t) {
    settle_at_most_ = checked_time(t, "settle_at_most");
    return *this;
}

std::chrono::nanoseconds partitioner_options::settle_at_most() const noexcept {
    constexpr auto limit = std::chrono::nanoseconds::max();
    return std::max(settle_, settle_at_most_.value_or(settle_ > limit / 10 ? limit : 10 * settle_));
}

using namespace membership_detail;

std::string_view to_string(partitioner_state s) noexcept {
    switch (s) {
        case partitioner_state::idle: return "idle";
        case partitioner_state::allocating: return "allocating";
        case partitioner_state::acquired: return "acquired";
        case partitioner_state::releasing: return "releasing";
    }
    return "unknown";
}

namespace {

std::string checked_partitioner_path(std::string path) {
    require_directory("partitioner", path);
    return path;
}

}  // namespace

partitioner::partitioner(client zk, std::string path, std::vector<std::string> partitions, partitioner_options options)
    : zk_(std::move(zk)),
      path_(checked_partitioner_path(std::move(path))),
      options_(std::move(options)),
      table_(std::make_shared<partition_table>(checked_partitions(path_, std::move(partitions)))) {
    if (!options_.assignment()) throw error(errc::invalid_argument, "partitioner", path_, "the assignment is empty");
}

partitioner_state partitioner::state() const noexcept { return table_ ? table_->state() : partitioner_state::idle; }

std::vector<std::string> partitioner::owned() const {
    return table_ ? table_->owned() : std::vector<std::string>();
}

asio::awaitable<void> membership_detail::run_partitioner(partition_body body, client zk, std::string path,
                                                         partitioner_options options,
                                                         std::shared_ptr<partition_table> table) {
    if (!table) throw error(errc::invalid_argument, "partitioner", {}, "this partitioner was moved from");
    if (!body) throw error(errc::invalid_argument, "partitioner", path, "the body is empty");
    table->begin(path);
    const std::unique_ptr<partition_table, void (*)(partition_table*)> running(
        table.get(), [](partition_table* t) { t->end(); });
    partition_work work(body, std::move(zk), std::move(path), std::move(options), *table);
    auto divide = [&work](task_scope& tasks) { return work.divide(tasks); };
    co_await with_task_scope(divide);
}

}  // namespace zkasio
