#include <zkasio/locks/detail/slot_names.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace zkasio::lock_detail {
namespace {

constexpr std::string_view used_prefix = "used-";

}  // namespace

std::optional<std::uint32_t> slot_of(std::string_view name, std::uint32_t n) noexcept {
    std::uint32_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [parsed, failed] = std::from_chars(name.data(), end, number);
    if (failed != std::errc() || parsed != end || number >= n) return std::nullopt;
    if (name.size() > 1 && name.front() == '0') return std::nullopt;
    return number;
}

std::string used_name(std::uint32_t slot) { return std::string(used_prefix) + std::to_string(slot); }

std::vector<free_slot> free_slots(const std::vector<std::string>& children, std::uint32_t n) {
    std::vector<bool> held(n), used(n);
    for (const std::string& name : children) {
        if (const auto number = slot_of(name, n))
            held[*number] = true;
        else if (const auto before = slot_of(std::string_view(name).substr(0, used_prefix.size()) == used_prefix
                                                 ? std::string_view(name).substr(used_prefix.size())
                                                 : std::string_view(),
                                             n))
            used[*before] = true;
    }
    std::vector<free_slot> all;
    for (std::uint32_t number = 0; number < n; ++number) {
        if (held[number]) continue;
        all.push_back({number, used[number]});
    }
    return all;
}

void spread(std::vector<free_slot>& free, unsigned refusals, std::uint64_t random) {
    constexpr unsigned most_refusals = 8;  // 4 to the power of it: slots::most
    const std::size_t among = std::min(free.size(), std::size_t(1) << 2 * std::min(refusals, most_refusals));
    if (among < 2) return;
    const auto first = static_cast<std::ptrdiff_t>(random % among), end = static_cast<std::ptrdiff_t>(among);
    std::rotate(free.begin(), free.begin() + first, free.begin() + end);
}

}  // namespace zkasio::lock_detail
