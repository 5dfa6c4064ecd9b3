#include <zkasio/detail/client/view_roots.hpp>

#include <algorithm>

namespace zkasio::detail {

view_id view_roots::add(std::string root) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find(roots_.begin(), roots_.end(), root);
    const auto number = static_cast<view_id>(known - roots_.begin()) + 1;
    if (known == roots_.end()) roots_.push_back(std::move(root));
    return number;
}

const std::string& view_roots::root_of(view_id view) const {
    static const std::string none;
    if (view == 0) return none;
    const std::lock_guard lock(mutex_);
    return roots_[view - 1];
}

std::string view_roots::whole(view_id view, std::string path) const {
    if (view == 0 || path.empty()) return path;
    const std::string& root = root_of(view);
    return path == "/" ? root : root + path;
}

std::string view_roots::shown(view_id view, std::string path) const {
    const std::string& root = root_of(view);
    if (view == 0 || !path.starts_with(root)) return path;
    if (path.size() == root.size()) return "/";
    return path[root.size()] == '/' ? path.substr(root.size()) : path;
}

}  // namespace zkasio::detail
