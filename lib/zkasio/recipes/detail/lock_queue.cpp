#include <zkasio/recipes/detail/lock_queue.hpp>

#include <zkasio/error.hpp>

#include <algorithm>
#include <charconv>

namespace zkasio::recipes::detail {
namespace {

std::int32_t ordered(const std::string& name, std::string_view marker, std::string_view directory) {
    if (const auto sequence = sequence_of(name, marker)) return *sequence;
    throw error(errc::foreign_child, "lock", directory,
                "child \"" + name + "\" is not named ..." + std::string(marker) + "<sequence>: use a directory of its own");
}

}  // namespace

std::optional<std::int32_t> sequence_of(std::string_view name, std::string_view marker) noexcept {
    const std::size_t at = name.rfind(marker);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view digits = name.substr(at + marker.size());
    std::int32_t value = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (ec != std::errc() || end != digits.data() + digits.size() || digits.size() < 10) return std::nullopt;
    return value;
}

lock_step next_step(const std::vector<std::string>& children, std::string_view mine, std::string_view protection_id,
                    std::string_view marker, std::string_view directory) {
    lock_step step;
    const auto own = sequence_of(mine, marker);
    bool present = false;
    const std::string* nearest = nullptr;
    std::int32_t nearest_sequence = 0;
    for (const std::string& name : children) {
        const std::int32_t sequence = ordered(name, marker, directory);
        if (name == mine) {
            present = true;
        } else if (name.find(protection_id) != std::string::npos) {
            step.duplicates.push_back(name);
        } else if (own && before(sequence, *own)) {
            ++step.position;
            if (!nearest || before(nearest_sequence, sequence)) {
                nearest = &name;
                nearest_sequence = sequence;
            }
        }
    }
    if (!own || !present) return step;
    step.what = nearest ? lock_step::kind::wait : lock_step::kind::owned;
    if (nearest) step.predecessor = *nearest;
    return step;
}

std::vector<std::string> in_order(std::vector<std::string> children, std::string_view marker, std::string_view directory) {
    if (children.empty()) return children;
    // Relative to one of them the numbers order as integers, wherever they wrap around.
    const auto base = static_cast<std::uint32_t>(ordered(children.front(), marker, directory));
    const auto key = [&](const std::string& name) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(ordered(name, marker, directory)) - base);
    };
    std::sort(children.begin(), children.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return children;
}

}  // namespace zkasio::recipes::detail
