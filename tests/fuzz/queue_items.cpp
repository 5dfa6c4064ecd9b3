// Names and data of the items of work queues. The first line is "<layout> <number> <id>", the others are the children of
// a directory, and all of them together the data of an item.
#include "fuzz/fuzz.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/detail/item_layout.hpp>

#include <algorithm>
#include <charconv>
#include <set>

namespace {

using namespace zkasio::fuzz;
using namespace zkasio::queue_detail;
using zkasio::put_options;
using zkasio::queue_kind;

constexpr queue_kind kinds[] = {queue_kind::kazoo_locking,  queue_kind::kazoo,      queue_kind::curator,
                                queue_kind::curator_priority, queue_kind::curator_delay, queue_kind::curator_id,
                                queue_kind::curator_simple};

void check_put(const item_names& names, const put_options& how, std::int32_t number, server_time due) {
    std::string prefix;
    try {
        prefix = names.prefix(how, due);
    } catch (const zkasio::error& e) {
        require(e.code() == zkasio::errc::invalid_argument, "only invalid_argument is documented", e.what());
        return;
    }
    for (const std::int32_t n : {0, number, -1 - number, -2147483647 - 1, 2147483647}) {
        const std::string name = prefix + sequence_text(n);
        require(names.prefix_of(name) == prefix, "a new item's name is read again", name);
        require(zkasio::sequence_behind(name, prefix)->number == n, "and its number", name);
        if (names.tell_times()) require(names.due(name) == std::max(due, server_time()), "and its time", name);
        require(names.prefix_of_dead(dead_name(name, n)) == prefix, "and when it is dead", name);
        if (names.tell_times()) continue;
        const auto later = names.parse_later(names.later_prefix(due, how) + sequence_text(n));
        require(later && later->prefix == prefix && later->due == std::max(due, server_time()),
                "a delayed item's name is read again", name);
    }
}

void check_children(const item_names& names, const std::vector<std::string>& children) {
    std::vector<std::string> known;
    for (const std::string& child : children) {
        const std::string_view prefix = names.prefix_of(child);
        require(child.starts_with(prefix), "a prefix is one", child);
        if (!prefix.empty()) {
            require(zkasio::sequence_behind(child, prefix).has_value(), "a number is behind it", child);
            known.push_back(child);
        }
        static_cast<void>(names.parse_later(child));
        static_cast<void>(names.prefix_of_dead(child));
    }
    try {
        static_cast<void>(names.in_order(children, "/q"));
        require(known.size() == children.size(), "a foreign child is refused");
    } catch (const zkasio::error& e) {
        require(e.code() == zkasio::errc::foreign_child, "a foreign child is called so", e.what());
        require(known.size() != children.size(), "only for a foreign child");
    }
    const std::vector<std::string> ordered = names.in_order(known, "/q");
    require(std::multiset<std::string>(ordered.begin(), ordered.end()) ==
                std::multiset<std::string>(known.begin(), known.end()),
            "no item is lost");
    for (std::size_t i = 1; i < ordered.size(); ++i)
        require(names.due(ordered[i - 1]) <= names.due(ordered[i]), "in the order of their times", ordered[i]);
}

void check_payload(queue_kind kind, std::string_view data) {
    const item_payload payload(kind);
    const auto packed = payload.unpack(payload.pack(std::string(data)));
    require(packed && packed->size() == 1 && packed->front() == data, "a value is read again", data);
    require(payload.value_or_all(payload.pack(std::string(data))) == data, "as one, too", data);
    const auto values = payload.unpack(data);
    require(payload.has_one_value(data) == (values && values->size() == 1), "one value is one", data);
    if (!values) return;
    if (values->size() == 1) require(payload.value_or_all(std::string(data)) == values->front(), "the value", data);
    if (values->size() == 1) require(payload.pack(values->front()) == data, "what is read is printed again", data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest = view(data, size);
    std::string_view line = take_line(rest);
    const queue_kind kind = kinds[line.empty() ? 0 : static_cast<unsigned char>(line.front()) % std::size(kinds)];
    line.remove_prefix(std::min<std::size_t>(line.size(), 2));
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), number);
    const std::string id(line.substr(std::min<std::size_t>(static_cast<std::size_t>(end - line.data()) + 1, line.size())));
    static_cast<void>(failed);

    const item_names names(kind);
    const server_time due(std::chrono::milliseconds(number % (1LL << 47)));
    const auto small = static_cast<std::int32_t>(number);
    put_options with_priority, with_id;
    with_priority.priority(small);
    if (zkasio::path_problem("/x" + id + "x").empty() || id.find('/') != std::string::npos) with_id.id(id);
    for (const put_options& how : {put_options(), with_priority, with_id}) check_put(names, how, small, due);
    check_children(names, lines_of(rest));
    check_payload(kind, rest);
    return 0;
}
