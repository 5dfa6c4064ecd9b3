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

namespace {

std::chrono::nanoseconds checked_time(std::chrono::nanoseconds t, const char* option) {
    if (t < std::chrono::nanoseconds(0))
        throw error(errc::invalid_argument, option, {}, "the time must not be negative");
    return t;
}

}  // namespace

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

}  // namespace zkasio
