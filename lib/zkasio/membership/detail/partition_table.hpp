#pragma once

#include <zkasio/membership/partitioner.hpp>

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace zkasio::membership_detail {

/// @param settled whether the members have been the same for long enough. @param assigned to this member. @param owned
/// by this member.
partitioner_state state_of(bool settled, const std::set<std::string>& assigned, const std::set<std::string>& owned);

/// Sorts them. Throws errc::invalid_argument if there is none, one is no name of a node, or one is there twice.
std::vector<std::string> checked_partitions(const std::string& path, std::vector<std::string> partitions);

/// The state of a partitioner that its users see, on any threads.
class partition_table {
public:
    explicit partition_table(std::vector<std::string> partitions) : partitions_(std::move(partitions)) {}

    /// All partitions, sorted.
    const std::vector<std::string>& partitions() const noexcept { return partitions_; }

    /// Throws errc::invalid_argument when the partitioner runs already.
    void begin(const std::string& path);
    void end();

    /// Members come or go.
    void unsettle();
    /// Returns `mine` as a set. Throws errc::invalid_argument for a name that is no partition. @param settled whether
    /// the members have been the same for long enough.
    std::set<std::string> assign(const std::string& path, const std::vector<std::string>& mine, bool settled);
    /// This member works on a partition that it stands in for, as if it were assigned to this member.
    void take(const std::string& name);
    void add(const std::string& owned);
    void remove(const std::string& owned);

    partitioner_state state() const;
    std::vector<std::string> owned() const;

private:
    const std::vector<std::string> partitions_;  // sorted
    mutable std::mutex mutex_;
    bool runs_ = false, settled_ = false;
    std::set<std::string> assigned_, owned_;
};

}  // namespace zkasio::membership_detail
