#include <zkasio/queues/detail/directories.hpp>

#include <zkasio/recipe/ensure_created.hpp>

namespace zkasio::queue_detail {

asio::awaitable<void> create_directories(session on, spec_ptr what) {
    const create_options how = what->of_directory();
    for (const std::string* path : {&what->items, &what->claims, &what->later, &what->dead})
        co_await ensure_created(on, *path, bytes(), how);
}

}  // namespace zkasio::queue_detail
