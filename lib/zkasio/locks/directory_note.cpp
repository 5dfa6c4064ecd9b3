#include <zkasio/locks/directory_note.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio {
namespace {

constexpr std::string_view first_line = "zkasio 1\n", leader_key = "leader ", revoke_key = "revoke ";

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

}  // namespace zkasio
