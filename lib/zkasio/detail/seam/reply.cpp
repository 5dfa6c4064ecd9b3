#include <zkasio/detail/seam/reply.hpp>

#include <algorithm>

namespace zkasio::detail {

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

}  // namespace zkasio::detail
