#include <zkasio/locks/detail/queue/queue_names.hpp>

#include <zkasio/error.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::lock_detail {

std::optional<std::int32_t> sequence_of(std::string_view name, std::string_view marker) noexcept {
    const auto found = sequence_behind(name, marker);
    return found ? std::optional<std::int32_t>(found->number) : std::nullopt;
}

queue_names::queue_names(const name_scheme& scheme, std::string exclusive, std::string shared, std::string directory)
    : prefix_(scheme.prefix()),
      separator_(scheme.separator()),
      dashes_(scheme.dashes()),
      has_id_(scheme.has_id()),
      foreign_allowed_(scheme.foreign_children_allowed()),
      exclusive_(std::move(exclusive)),
      shared_(std::move(shared)),
      readers_of_scheme_(scheme.read_marker()),
      directory_(std::move(directory)) {}

queue_names queue_names::in(std::string directory) const {
    queue_names same = *this;
    same.directory_ = std::move(directory);
    return same;
}

std::optional<queue_names::parsed> queue_names::find(std::string_view name) const noexcept {
    if (const auto sequence = sequence_of(name, exclusive_)) return parsed{*sequence, lock_kind::exclusive};
    if (!shared_.empty())
        if (const auto sequence = sequence_of(name, shared_)) return parsed{*sequence, lock_kind::shared};
    return std::nullopt;
}

std::optional<queue_names::parsed> queue_names::contender(std::string_view name) const {
    if (foreign_allowed_) return find(name);
    return parse(name);
}

queue_names::parsed queue_names::parse(std::string_view name) const {
    if (const auto known = find(name)) return *known;
    std::string hint = "child \"" + std::string(name) + "\" is not named ..." + exclusive_ + "<sequence>";
    if (!shared_.empty()) hint += " or ..." + shared_ + "<sequence>";
    throw error(errc::foreign_child, "lock", directory_,
                hint + ": use a directory of its own, and one name_scheme for all, or see "
                       "name_scheme::allow_foreign_children()");
}

std::string queue_names::prefix(const std::string& id, lock_kind kind) const {
    const std::string& marker = kind == lock_kind::exclusive ? exclusive_ : shared_;
    std::string name;
    name.reserve(prefix_.size() + id.size() + separator_.size() + marker.size());
    return name.append(prefix_).append(id).append(separator_).append(marker);
}

std::size_t queue_names::prefix_size(lock_kind kind) const noexcept {
    const std::string& marker = kind == lock_kind::exclusive ? exclusive_ : shared_;
    return prefix_.size() + (dashes_ ? 36 : 32) + separator_.size() + marker.size();
}

std::string_view queue_names::digits(std::string_view name) const {
    return sequence_behind(name, parse(name).kind == lock_kind::exclusive ? exclusive_ : shared_)->digits;
}

std::string queue_names::key() const {  // joined by '/', which occurs in no part
    return prefix_ + '/' + separator_ + '/' + exclusive_ + '/' + shared_ + (dashes_ ? "/-" : "/");
}

std::string queue_names::markers() const {
    const std::string first = '"' + exclusive_ + '"';
    return readers_of_scheme_.empty() ? first : first + ", \"" + readers_of_scheme_ + '"';
}

std::string queue_names::new_id() const {
    std::string id = new_protection_id();
    if (!dashes_) std::erase(id, '-');
    return id;
}

std::vector<queue_names::contender_name> queue_names::in_order(std::vector<std::string> children) const {
    struct numbered {
        std::int32_t number;  // relative to the first child: ordered as an integer, wherever sequences wrap around
        contender_name what;
    };
    std::vector<numbered> all;
    all.reserve(children.size());
    std::uint32_t base = 0;
    for (std::string& name : children) {
        const std::optional<parsed> p = contender(name);
        if (!p) continue;
        if (all.empty()) base = static_cast<std::uint32_t>(p->sequence);
        all.push_back(
            {static_cast<std::int32_t>(static_cast<std::uint32_t>(p->sequence) - base), {std::move(name), p->kind}});
    }
    std::sort(all.begin(), all.end(), [](const numbered& a, const numbered& b) {
        return a.number != b.number ? a.number < b.number : a.what.kind < b.what.kind;
    });
    std::vector<contender_name> result;
    result.reserve(all.size());
    for (numbered& n : all) result.push_back(std::move(n.what));
    return result;
}

}  // namespace zkasio::lock_detail
