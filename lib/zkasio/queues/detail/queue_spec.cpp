#include <zkasio/queues/detail/queue_spec.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/certain.hpp>

#include <string_view>

namespace zkasio::queue_detail {
namespace {

bool has_items_below(const queue_layout& l) { return l.kind() != queue_kind::kazoo_locking; }

// A directory of this library: among the items, another library would take it for one.
std::string directory(const std::string& path, const queue_layout& l, std::string_view name) {
    return has_items_below(l) ? path + '-' + std::string(name) : join_path(path, name);
}

}  // namespace

queue_spec::queue_spec(std::string p, work_queue_options o)
    : path(std::move(p)),
      options(std::move(o)),
      names(options.layout().kind()),
      payload(options.layout().kind()),
      items(has_items_below(options.layout()) ? path : join_path(path, "entries")),
      claims(options.layout().lock_path().empty() ? directory(path, options.layout(), "taken")
                                                  : options.layout().lock_path()),
      later(directory(path, options.layout(), "later")),
      dead(directory(path, options.layout(), "dead")),
      receipts(directory(path, options.layout(), "receipts")) {
    require_path("work_queue", path);
    if (has_items_below(options.layout()) && path == "/")
        throw error(errc::invalid_path, "work_queue", path, "in this layout, all children of the path are items");
    if (claims == items || parent_path(claims) == items)
        throw error(errc::invalid_argument, "work_queue", path, "the lock path is among the items: " + claims);
}

asio::awaitable<void> create_directories(session on, spec_ptr what) {
    const create_options how = what->of_directory();
    for (const std::string* path : {&what->items, &what->claims, &what->later, &what->dead})
        co_await ensure_created(on, *path, bytes(), how);
}

}  // namespace zkasio::queue_detail
