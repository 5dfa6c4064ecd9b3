// Names of the nodes of locks, elections and slots. The first line names the scheme ("curator", "latch", "kazoo", or
// "prefix exclusive shared"), the others are the children of a directory; and all of it is the data of a directory.
#include "fuzz/fuzz.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/detail/slot_rest.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <optional>
#include <set>

namespace {

using namespace zkasio::fuzz;
using zkasio::lock_kind;
using zkasio::name_scheme;
using zkasio::lock_detail::before;
using zkasio::lock_detail::queue_names;

std::optional<name_scheme> scheme_of(std::string_view line) {
    if (line == "curator") return name_scheme::curator();
    if (line == "latch") return name_scheme::curator_latch();
    if (line == "kazoo") return name_scheme::kazoo();
    const std::size_t first = std::min(line.find(' '), line.size()), second = line.find(' ', first + 1);
    const std::string prefix(line.substr(0, first));
    const std::string exclusive(first == line.size() ? "" : line.substr(first + 1, second - first - 1));
    const std::string shared(second == std::string_view::npos ? "" : line.substr(second + 1));
    try {
        return name_scheme::custom(prefix, exclusive, shared);
    } catch (const zkasio::error& e) {
        require(e.code() == zkasio::errc::invalid_argument, "only invalid_argument is documented", e.what());
        return std::nullopt;
    }
}

void check_new_names(const queue_names& names, std::string_view text) {
    const auto number = static_cast<std::int32_t>(number_of(text));
    for (const lock_kind kind : {lock_kind::exclusive, lock_kind::shared}) {
        if (kind == lock_kind::shared && !names.has_shared()) continue;
        for (const std::int32_t n : {0, 1, number, -1 - number, -1'000'000'000, -2147483647 - 1, 2147483647}) {
            const std::string name = names.prefix("0123456789abcdef0123456789abcdef", kind) + sequence_text(n);
            require(zkasio::path_problem("/" + name).empty(), "a new name is one", name);
            const queue_names::parsed read = names.parse(name);
            require(read.kind == kind && read.sequence == n, "a new name is read again", name);
            require(names.digits(name) == sequence_text(n), "and its digits", name);
        }
    }
}

void check_children(const queue_names& names, const name_scheme& scheme, std::vector<std::string> children) {
    std::vector<std::string> known;
    for (const std::string& child : children) {
        try {
            static_cast<void>(names.parse(child));
            known.push_back(child);
        } catch (const zkasio::error& e) {
            require(e.code() == zkasio::errc::foreign_child, "a foreign child is called so", child);
        }
    }
    const bool refused = refuses<zkasio::error>([&] { static_cast<void>(names.in_order(children)); });
    require(refused == (known.size() != children.size()), "a list is refused for a foreign child only");
    if (known.empty()) return;

    const auto ordered = names.in_order(known);
    require(ordered.size() == known.size(), "no child is lost");
    std::multiset<std::string> sorted_names, given(known.begin(), known.end());
    for (const auto& c : ordered) sorted_names.insert(c.name);
    require(sorted_names == given, "the same children");
    // Of children less than 2^31 numbers apart, the order is that of `before`, and the same from any first child.
    std::int64_t least = 0, most = 0;
    const auto base = static_cast<std::uint32_t>(names.parse(known.front()).sequence);
    for (const std::string& child : known) {
        const auto n = static_cast<std::int32_t>(static_cast<std::uint32_t>(names.parse(child).sequence) - base);
        least = std::min<std::int64_t>(least, n);
        most = std::max<std::int64_t>(most, n);
    }
    if (most - least >= (std::int64_t{1} << 31)) return;
    for (std::size_t i = 1; i < ordered.size(); ++i) {
        const std::int32_t a = names.parse(ordered[i - 1].name).sequence, b = names.parse(ordered[i].name).sequence;
        require(!before(b, a), "in the order of their numbers", ordered[i].name);
    }
    std::vector<std::string> turned(known);
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    const auto again = names.in_order(turned);
    for (std::size_t i = 0; i < ordered.size(); ++i)
        require(names.parse(again[i].name).sequence == names.parse(ordered[i].name).sequence,
                "the order does not depend on the list's", ordered[i].name);
    if (names.has_shared() || scheme.mutex_marker() != names.exclusive()) return;
    const std::string first = scheme.first_of(known, "/d");
    require(names.parse(first).sequence == names.parse(ordered.front().name).sequence, "the first one holds", first);
}

void check_slots(const std::vector<std::string>& children) {
    constexpr std::uint32_t n = 8;
    std::set<std::uint32_t> held;
    for (const std::string& child : children)
        if (const auto slot = zkasio::lock_detail::slot_of(child, n)) {
            require(*slot < n && std::to_string(*slot) == child, "a slot's name is its number", child);
            held.insert(*slot);
        }
    std::int64_t last = -1;
    const auto free = zkasio::lock_detail::free_slots(children, n);
    for (const auto& f : free) {
        require(f.number < n && !held.contains(f.number), "a free slot is free");
        require(last < f.number, "the lowest first");
        last = f.number;
        const std::string used_node = zkasio::lock_detail::used_name(f.number);
        const bool used = std::count(children.begin(), children.end(), used_node) > 0;
        require(f.used_before == used, "what was used before is known");
    }
    require(free.size() + held.size() == n, "all slots are held or free");
}

void check_note(std::string_view data) {
    using zkasio::directory_note;
    const directory_note note = directory_note::parse(data);
    require(directory_note::parse(note.text()) == note, "a note is read again", data);
    for (const std::string& name : note.revoked) require(note.revokes(name), "who is asked to give way is told", name);
    if (!note.leader.empty())
        require(note.proclaimed_by(note.leader) == note.proclaimed, "the leader has proclaimed that", data);
    if (refuses<zkasio::error>([&] { static_cast<void>(directory_note::parse_to_write(data, "set", "/d")); }))
        require(note == directory_note(), "data of others are an empty note", data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest = view(data, size);
    check_note(rest);
    const std::string_view first = take_line(rest);
    const std::vector<std::string> children = lines_of(rest);
    check_slots(children);
    const std::optional<name_scheme> scheme = scheme_of(first);
    if (!scheme) return 0;
    const queue_names mutex(*scheme, scheme->mutex_marker(), {}, "/d");
    const queue_names shared(*scheme, scheme->write_marker(), scheme->read_marker(), "/d");
    for (const queue_names& names : {mutex, shared}) {
        check_new_names(names, rest);
        check_children(names, *scheme, children);
    }
    if (const auto suffix = zkasio::sequence_behind(rest, first)) {
        require(sequence_text(suffix->number) == suffix->digits, "digits are a number", suffix->digits);
        require(rest.ends_with(std::string(first) + std::string(suffix->digits)), "marker and digits are the end", rest);
    }
    return 0;
}
