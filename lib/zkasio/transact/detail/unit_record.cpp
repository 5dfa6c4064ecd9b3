#include <zkasio/transact/detail/unit_record.hpp>

#include <zkasio/path.hpp>

#include <system_error>
#include <utility>

namespace zkasio::transact_detail {

const seen_node* unit_record::view(const std::string& path) const {
    const auto it = nodes_.find(path);
    return it != nodes_.end() && it->second.now ? &*it->second.now : nullptr;
}

const seen_node& unit_record::note_read(const std::string& path, seen_node found) {
    if (found && found->stat.version < 0)
        throw error(std::make_error_code(std::errc::result_out_of_range), "get", path,
                    "the version of the node is negative, which no transaction can name as its condition");
    node& n = nodes_[path];
    if (!n.now) {
        n.read.emplace(found);
        n.now.emplace(std::move(found));
    }
    return *n.now;
}

bool unit_record::has_read(const std::string& path) const {
    const auto it = nodes_.find(path);
    return it != nodes_.end() && it->second.read;
}

void unit_record::note_missing(const std::string& path) {
    node& n = nodes_[path];
    if (n.read) return;
    n.read.emplace();
    if (!n.now) n.now.emplace();
    if (!n.first_write) return;
    const transaction::kind first = writes_[*n.first_write].what;
    if (first == transaction::kind::create) return;
    contradict(zk_errc::no_node, first == transaction::kind::set ? "set" : "remove", path, "there is no node");
}

// ------------------------------------------------------------------------------------------------------ writes

bool unit_record::is_known_to_be(bool there, const std::string& path) const {
    const seen_node* now = view(path);
    return now && now->has_value() == there;
}

void unit_record::contradict(zk_errc code, const char* operation, const std::string& path, const char* hint) {
    if (!contradiction_) contradiction_.emplace(code, operation, path, hint);
}

unit_record::node& unit_record::note_write(transaction::kind what, const std::string& path, std::string data,
                                           create_options how) {
    node& n = nodes_[path];
    if (!n.first_write) n.first_write = writes_.size();
    writes_.push_back({what, path, std::move(data), any_version, std::move(how)});
    return n;
}

void unit_record::set(const std::string& path, std::string data) {
    if (is_known_to_be(false, path)) return contradict(zk_errc::no_node, "set", path, "the body sees no node there");
    node& n = nodes_[path];
    if (n.data_write) {
        writes_[*n.data_write].data = data;
    } else {
        n.data_write = writes_.size();
        note_write(transaction::kind::set, path, data, {});
    }
    if (!n.now) n.now.emplace(node_data());
    (**n.now).data = std::move(data);
}

void unit_record::create(const std::string& path, std::string data, create_options how) {
    if (is_known_to_be(false, std::string(parent_path(path))))
        return contradict(zk_errc::no_node, "create", path, "the body sees no parent of it");
    if (is_sequential(how.mode())) {  // the name of the node is not known
        writes_.push_back({transaction::kind::create, path, std::move(data), any_version, std::move(how)});
        return;
    }
    if (is_known_to_be(true, path))
        return contradict(zk_errc::node_exists, "create", path, "the body sees a node there");
    node_data made;
    made.data = data;
    node& n = note_write(transaction::kind::create, path, std::move(data), std::move(how));
    n.data_write = writes_.size() - 1;
    n.now.emplace(std::move(made));
}

void unit_record::remove(const std::string& path) {
    if (is_known_to_be(false, path)) return contradict(zk_errc::no_node, "remove", path, "the body sees no node there");
    node& n = note_write(transaction::kind::remove, path, {}, {});
    n.data_write.reset();
    n.now.emplace();
}

// -------------------------------------------------------------------------------------------------- the transaction

bool unit_record::is_condition_of_first_write(const node& n) const {
    if (contradiction_ || !n.first_write) return false;
    const bool creates = writes_[*n.first_write].what == transaction::kind::create;
    return creates != n.read->has_value();
}

bool unit_record::has_missing_ancestor(const std::string& path) const {
    for (std::string_view p = parent_path(path); p.size() > 1; p = parent_path(p)) {
        const auto it = nodes_.find(std::string(p));
        if (it != nodes_.end() && it->second.read && !*it->second.read) return true;
    }
    return false;
}

// A missing parent says that the node is missing as well; only the parent can be created.
bool unit_record::asserts_absence(const std::string& path, const node& n) const {
    return n.read && !*n.read && !is_condition_of_first_write(n) && !has_missing_ancestor(path);
}

bool unit_record::saw_nothing() const {
    return std::none_of(nodes_.begin(), nodes_.end(), [](const auto& of) { return of.second.read && *of.second.read; });
}

std::vector<std::string> unit_record::read_paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, n] : nodes_)
        if (n.read) paths.push_back(path);
    return paths;
}

transaction unit_record::steps() const {
    transaction all;
    for (const auto& [path, n] : nodes_) {
        if (n.read && *n.read && !is_condition_of_first_write(n)) all.check(path, (**n.read).stat.version);
        if (asserts_absence(path, n)) all.create(path).remove(path);
    }
    if (contradiction_) return all;
    for (std::size_t i = 0; i < writes_.size(); ++i) {
        const transaction::step& w = writes_[i];
        std::int32_t version = any_version;
        const auto it = nodes_.find(w.path);
        if (it != nodes_.end() && it->second.first_write == i && it->second.read && *it->second.read)
            version = (**it->second.read).stat.version;
        switch (w.what) {
            case transaction::kind::create: all.create(w.path, w.data, w.options); break;
            case transaction::kind::set: all.set(w.path, w.data, version); break;
            case transaction::kind::remove: all.remove(w.path, version); break;
            case transaction::kind::check: break;  // not among writes_
        }
    }
    return all;
}

unit_record::refusal unit_record::meaning_of(const error& refused) const {
    const auto it = nodes_.find(refused.path());
    if (it == nodes_.end() || !it->second.read) return refusal::of_a_write;
    const node& n = it->second;
    const std::error_code code = refused.code();
    if (*n.read) {
        const bool changed = code == zk_errc::bad_version || code == zk_errc::no_node;
        return changed ? refusal::conflict : refusal::of_a_write;
    }
    if (code == zk_errc::node_exists) return refusal::conflict;
    const bool has_parent = parent_path(refused.path()) != "/";
    if (code == zk_errc::no_node && has_parent && asserts_absence(refused.path(), n)) return refusal::no_parent;
    return refusal::of_a_write;
}

std::map<std::string, seen_node> unit_record::conditions_among_writes() const {
    std::map<std::string, seen_node> read;
    for (const auto& [path, n] : nodes_)
        if (n.read && is_condition_of_first_write(n)) read.emplace(path, *n.read);
    return read;
}

bool unit_record::is_unchanged(const seen_node& read, const seen_node& now) noexcept {
    if (!read || !now) return !read && !now;
    return read->stat.czxid == now->stat.czxid && read->stat.version == now->stat.version;
}

}  // namespace zkasio::transact_detail
