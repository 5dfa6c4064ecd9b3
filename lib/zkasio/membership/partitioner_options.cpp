#include <zkasio/membership/partitioner_options.hpp>

#include <zkasio/error.hpp>
#include <zkasio/operations.hpp>

#include <asio/ip/host_name.hpp>

#include <unistd.h>

#include <algorithm>

namespace zkasio {

std::vector<std::string> assign_in_turn(const std::string& me, const std::vector<std::string>& members,
                                        const std::vector<std::string>& partitions) {
    std::vector<std::string> mine;
    const auto found = std::find(members.begin(), members.end(), me);
    if (found == members.end()) return mine;
    for (auto i = static_cast<std::size_t>(found - members.begin()); i < partitions.size(); i += members.size())
        mine.push_back(partitions[i]);
    return mine;
}

partitioner_options::partitioner_options() {
    std::error_code ignored;
    id_ = asio::ip::host_name(ignored) + '-' + std::to_string(::getpid()) + '-' + new_protection_id().substr(0, 8);
}

partitioner_options& partitioner_options::settle(any_duration t) {
    const std::chrono::nanoseconds time = t;
    if (time < std::chrono::nanoseconds(0))
        throw error(errc::invalid_argument, "settle", {}, "the time must not be negative");
    settle_ = time;
    return *this;
}

}  // namespace zkasio
