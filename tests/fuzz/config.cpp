// What config_value reads: JSON into C++ types, other libraries' numbers, and the state that follows from an answer.
#include "fuzz/fuzz.hpp"

#include <zkasio/config/detail/state_after.hpp>
#include <zkasio/config/json.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <cmath>
#include <map>
#include <optional>

namespace settings {

struct limits {
    int retries = 0;
    std::uint8_t level = 0;
    double factor = 0;
    float share = 0;
    bool on = false;
    std::string name;
    std::vector<std::int64_t> ports;
    std::map<std::string, int> weights;
    friend bool operator==(const limits&, const limits&) = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limits, retries, level, factor, share, on, name, ports, weights)

}  // namespace settings

namespace {

using namespace zkasio::fuzz;

// What is read can be written, and is read again as the same value. `parse` may throw any exception.
template <class T>
std::optional<T> check(const zkasio::config_format<T>& format, std::string_view text) {
    std::optional<T> value;
    try {
        value = format.parse()(text);
    } catch (const std::exception&) {
        return std::nullopt;
    }
    const std::string printed = format.print()(*value);
    require(format.parse()(printed) == *value, "what is printed is read again", text);
    if (format.before_update()) {
        try {
            format.before_update()(printed, *value);
        } catch (const std::exception& e) {
            require(false, e.what(), printed);
        }
    }
    return value;
}

void check_state(std::string_view text) {
    using namespace zkasio::config_detail;
    zkasio::node_report said;
    said.answer.data = text;
    said.answer.stat.version = 7;
    const value_parser parse = [](std::string_view t) -> std::shared_ptr<const void> {
        return std::make_shared<const settings::limits>(zkasio::json_format<settings::limits>().parse()(t));
    };
    config_state last;
    last.value = std::make_shared<const int>(1);
    const config_state now = state_after(last, said, "/c", parse, nullptr);  // must not throw
    require(now.version == 7 && now.number == last.number + 1, "the version is the node's", text);
    require(now.problem.has_value() == (now.value == last.value), "a new value, or a problem and the old one", text);
    if (now.problem) require(now.problem->hint().size() < 400, "a message can be read", now.problem->what());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = view(data, size);
    check(zkasio::json_format<settings::limits>(), text);
    check(zkasio::json_format<nlohmann::json>(), text);
    check(zkasio::json_format<std::map<std::string, std::int64_t>>(), text);
    check(zkasio::json_format<std::vector<std::uint16_t>>(), text);
    check(zkasio::json_format<std::string>(), text);
    check(zkasio::json_format<double>(), text);
    // A number is read exactly, or refused.
    if (const auto n = check(zkasio::json_format<std::int64_t>(), text)) {
        const nlohmann::json whole = nlohmann::json::parse(text);
        require(!whole.is_number_float() || std::trunc(whole.get<double>()) == whole.get<double>(), "an integer", text);
        if (text.find_first_not_of("-0123456789") == text.npos)
            require(text == "-0" || std::to_string(*n) == text, "all digits count", text);
    }
    check(zkasio::curator_count(), text);
    check(zkasio::curator_long(), text);
    check(zkasio::kazoo_counter(), text);
    check_state(text);
    return 0;
}
