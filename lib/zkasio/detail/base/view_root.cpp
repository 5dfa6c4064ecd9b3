#include <zkasio/detail/base/view_root.hpp>

namespace zkasio::detail {

std::string path_below(const std::string& root, std::string path) {
    if (path.empty()) return path;
    return path == "/" ? root : root + path;
}

std::string path_without(const std::string& root, std::string path) {
    if (!path.starts_with(root)) return path;
    if (path.size() == root.size()) return "/";
    return path[root.size()] == '/' ? path.substr(root.size()) : path;
}

}  // namespace zkasio::detail
