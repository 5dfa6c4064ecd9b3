#include <zkasio/detail/seam/request.hpp>

#include <zkasio/path.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace zkasio::detail {
namespace {

constexpr std::size_t header_size = 16;  // the packet's length, xid and operation
constexpr std::size_t step_size = 9;     // in front of each step of a transaction, and behind the last

template <class Request>
std::size_t whole_size(const Request& r) noexcept {
    return r.size() + row_path(r).size();
}

template <class Request>
watch_target target_of(const Request& r) noexcept {
    if constexpr (requires { r.watch; }) {
        static const std::string config = "/zookeeper/config";
        watch_target t;
        t.kind = Request::watches;
        t.missing_node_counts = requires { Request::watches_missing_node; };
        if constexpr (requires { r.path; })
            t.path = r.watch ? &r.path : nullptr;
        else
            t.path = r.watch ? &config : nullptr;
        return t;
    } else {
        return {};
    }
}

}  // namespace

std::size_t wire_size(const zkasio::acl& entries) noexcept {
    std::size_t n = 4;
    for (const acl_entry& e : entries) n += 12 + e.who().scheme().size() + e.who().id().size();
    return n;
}

namespace {

// As default_acl() has them; spelled out, since each create is compared with them.
bool has_scheme_of_default(const acl_entry& e) noexcept { return e.who().scheme() == "zkasio"; }
bool is_default(const acl_entry& e) noexcept {
    return has_scheme_of_default(e) && e.who().id() == "default" && e.granted() == permission::all;
}

}  // namespace

bool has_default(const zkasio::acl& entries) noexcept {
    return std::any_of(entries.begin(), entries.end(), has_scheme_of_default);
}

bool complete(zkasio::acl& entries, const zkasio::acl& by_default) {
    if (std::none_of(entries.begin(), entries.end(), is_default)) return false;
    if (entries.size() == 1) {
        entries = by_default;  // without an allocation
        return true;
    }
    zkasio::acl all;
    all.reserve(entries.size() - 1 + by_default.size());
    for (acl_entry& e : entries) {
        if (is_default(e))
            all.insert(all.end(), by_default.begin(), by_default.end());
        else
            all.push_back(std::move(e));
    }
    entries = std::move(all);
    return true;
}

std::size_t multi_request::size() const noexcept {
    std::size_t n = step_size;
    for (const multi_op& op : ops) n += step_size + std::visit([](const auto& step) { return whole_size(step); }, op);
    return n;
}

std::size_t multi_read_request::size() const noexcept {
    std::size_t n = step_size;
    for (const read_op& op : reads) n += step_size + std::visit([](const auto& read) { return whole_size(read); }, op);
    return n;
}

std::size_t encoded_size(const request& r) noexcept {
    return header_size + std::visit([](const auto& row) { return whole_size(row); }, r);
}

watch_target watch_of(const request& r) {
    return std::visit([](const auto& row) { return target_of(row); }, r);
}

void set_watch(request& r, bool watch) noexcept {
    const auto set = [watch](auto& row) {
        if constexpr (requires { row.watch; }) row.watch = watch;
    };
    std::visit(set, r);
}

bool is_about_root(const request& r) {
    const std::string_view path = path_of(r);
    return path == "/" || (std::holds_alternative<create_request>(r) && parent_path(path) == "/");
}

}  // namespace zkasio::detail
