#include <zkasio/detail/request_facts.hpp>

#include <zkasio/path.hpp>

#include <algorithm>

namespace zkasio::detail {

watch_target watch_of(const request& r) {
    static const std::string config = "/zookeeper/config";
    if (const auto* g = std::get_if<get_request>(&r); g && g->watch) return {&g->path, watch_kind::data, false};
    if (const auto* e = std::get_if<exists_request>(&r); e && e->watch) return {&e->path, watch_kind::data, true};
    if (const auto* c = std::get_if<children_request>(&r); c && c->watch) return {&c->path, watch_kind::children, false};
    if (const auto* c = std::get_if<get_config_request>(&r); c && c->watch) return {&config, watch_kind::config, false};
    return {};
}

std::optional<std::string> missing_node(const request& removal, const reply& r) {
    const auto* m = std::get_if<multi_request>(&removal);
    if (!m) return std::nullopt;
    for (std::size_t i = 0; i + 1 < std::min(m->ops.size(), r.results.size()); ++i)
        if (r.results[i].code == zk_errc::no_node) return std::get<check_op>(m->ops[i]).path;
    return std::nullopt;
}

std::string removed_path(const request& removal) {
    const auto* m = std::get_if<multi_request>(&removal);
    return m ? std::get<remove_request>(m->ops.back()).path : std::string(path_of(removal));
}

bool is_about_root(const request& r) {
    const std::string_view path = path_of(r);
    return path == "/" || (std::holds_alternative<create_request>(r) && parent_path(path) == "/");
}

}  // namespace zkasio::detail
