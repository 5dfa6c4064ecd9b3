#include <zkasio/detail/client/view_roots.hpp>

#include <bit>
#include <cstddef>

namespace zkasio::detail {
namespace {

struct place {
    explicit place(view_id view)
        : array(static_cast<std::size_t>(std::bit_width(view)) - 1), at(view - (view_id{1} << array)) {}
    const std::size_t array;
    const view_id at;
};

}  // namespace

view_id view_roots::add(const std::string& root) {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(root); known != known_.end()) return known->second;
    const auto view = static_cast<view_id>(known_.size()) + 1;
    const place p(view);
    if (p.at == 0) {
        allocated_.at(p.array) = std::make_unique<std::string[]>(std::size_t{1} << p.array);
        roots_.at(p.array).store(allocated_[p.array].get(), std::memory_order_release);
    }
    allocated_[p.array][p.at] = root;
    known_.emplace(root, view);  // last: nobody knows a number whose root could not be stored
    return view;
}

const std::string& view_roots::root_of(view_id view) const noexcept {
    static const std::string none;
    if (view == 0) return none;
    const place p(view);
    return roots_[p.array].load(std::memory_order_acquire)[p.at];
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
