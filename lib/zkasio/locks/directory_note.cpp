#include <zkasio/locks/directory_note.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio {
namespace {

constexpr std::string_view first_line = "zkasio 1\n", leader_key = "leader ", revoke_key = "revoke ";

// As new_protection_id() writes it, with its dashes or without.
bool begins_with_id(std::string_view name) noexcept {
    std::size_t digits = 0, dashes = 0;
    for (const char c : name) {
        if (std::string_view("0123456789abcdef").find(c) != std::string_view::npos) {
            if (++digits == 32) return dashes == 0 || dashes == 4;
        } else if (c == '-' && dashes < 4 && digits == 8 + 4 * dashes) {
            ++dashes;
        } else {
            return false;
        }
    }
    return false;
}

bool has_id(std::string_view name) noexcept {
    for (; !name.empty(); name.remove_prefix(1))
        if (begins_with_id(name)) return true;
    return false;
}

}  // namespace

directory_note directory_note::parse(std::string_view data) {
    directory_note note;
    if (!data.starts_with(first_line)) return note;
    data.remove_prefix(first_line.size());
    for (;;) {
        const std::size_t end = data.find('\n');
        const std::string_view line = data.substr(0, end);
        data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
        if (line.empty()) break;  // the rest is the proclamation
        if (line.starts_with(leader_key)) note.leader = line.substr(leader_key.size());
        if (line.starts_with(revoke_key)) note.revoked.emplace_back(line.substr(revoke_key.size()));
    }
    if (!note.leader.empty()) note.proclaimed = data;
    return note;
}

directory_note directory_note::parse_to_write(std::string_view data, std::string_view operation,
                                              const std::string& path) {
    if (!data.empty() && !data.starts_with(first_line))
        throw error(errc::invalid_argument, operation, path,
                    "the directory of the election has data of another program, which would be lost: clear them");
    return parse(data);
}

std::string directory_note::text() const {
    std::string all(first_line);
    const auto add = [&](std::string_view key, std::string_view name) { all.append(key).append(name).push_back('\n'); };
    if (!leader.empty()) add(leader_key, leader);
    for (const std::string& name : revoked) add(revoke_key, name);
    all.push_back('\n');
    return leader.empty() ? all : all + proclaimed;
}

std::optional<std::string> directory_note::proclaimed_by(std::string_view node_name) const {
    if (leader.empty() || leader != node_name) return std::nullopt;
    return proclaimed;
}

bool directory_note::revokes(std::string_view node_name) const {
    return std::find(revoked.begin(), revoked.end(), node_name) != revoked.end();
}

bool is_latch_node(std::string_view path) noexcept {
    return lock_detail::sequence_of(node_name(path), "latch-").has_value();
}

bool has_contender_id(std::string_view path) noexcept {
    const std::string_view name = node_name(path);
    const auto number = sequence_behind(name, "");
    return number && has_id(name.substr(0, name.size() - number->digits.size()));
}

}  // namespace zkasio
