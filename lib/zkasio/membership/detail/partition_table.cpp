#include <zkasio/membership/detail/partition_table.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cassert>

namespace zkasio::membership_detail {

partitioner_state state_of(bool settled, const std::set<std::string>& assigned, const std::set<std::string>& owned) {
    if (!std::includes(assigned.begin(), assigned.end(), owned.begin(), owned.end()))
        return partitioner_state::releasing;
    return settled && assigned == owned ? partitioner_state::acquired : partitioner_state::allocating;
}

std::vector<std::string> checked_partitions(const std::string& path, std::vector<std::string> partitions) {
    const auto refuse = [&](const std::string& why) { throw error(errc::invalid_argument, "partitioner", path, why); };
    if (partitions.empty()) refuse("there are no partitions");
    std::sort(partitions.begin(), partitions.end());
    for (const std::string& name : partitions)
        if (name.find('/') != std::string::npos || !path_problem("/" + name).empty() || name.empty())
            refuse("'" + name + "' is no name of a node");
    const auto twice = std::adjacent_find(partitions.begin(), partitions.end());
    if (twice != partitions.end()) refuse("there are two partitions '" + *twice + "'");
    return partitions;
}

void partition_table::begin(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (runs_) throw error(errc::invalid_argument, "partitioner", path, "it runs already");
    runs_ = true;
    settled_ = false;
    assigned_.clear();
}

void partition_table::end() {
    const std::lock_guard lock(mutex_);
    assert(runs_);
    runs_ = false;
}

void partition_table::unsettle() {
    const std::lock_guard lock(mutex_);
    settled_ = false;
}

std::set<std::string> partition_table::assign(const std::string& path, const std::vector<std::string>& mine,
                                              bool settled) {
    std::set<std::string> assigned(mine.begin(), mine.end());
    for (const std::string& name : assigned)
        if (!std::binary_search(partitions_.begin(), partitions_.end(), name))
            throw error(errc::invalid_argument, "partitioner", path,
                        "the assignment has returned '" + name + "', which is no partition");
    const std::lock_guard lock(mutex_);
    settled_ = settled;
    assigned_ = assigned;
    return assigned;
}

void partition_table::take(const std::string& name) {
    assert(std::binary_search(partitions_.begin(), partitions_.end(), name));
    const std::lock_guard lock(mutex_);
    assigned_.insert(name);
}

void partition_table::add(const std::string& owned) {
    const std::lock_guard lock(mutex_);
    [[maybe_unused]] const bool is_new = owned_.insert(owned).second;
    assert(is_new && "a partition has one owner");
}

void partition_table::remove(const std::string& owned) {
    const std::lock_guard lock(mutex_);
    [[maybe_unused]] const std::size_t removed = owned_.erase(owned);
    assert(removed == 1);
}

partitioner_state partition_table::state() const {
    const std::lock_guard lock(mutex_);
    return runs_ ? state_of(settled_, assigned_, owned_) : partitioner_state::idle;
}

std::vector<std::string> partition_table::owned() const {
    const std::lock_guard lock(mutex_);
    return {owned_.begin(), owned_.end()};
}

}  // namespace zkasio::membership_detail
