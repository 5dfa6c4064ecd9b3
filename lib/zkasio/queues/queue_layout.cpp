#include <zkasio/queues/queue_layout.hpp>

#include <zkasio/path.hpp>

namespace zkasio {
namespace {

std::string checked(std::string lock_path) {
    if (!lock_path.empty()) require_path("queue_layout", lock_path);
    return lock_path;
}

}  // namespace

queue_layout queue_layout::curator(std::string lock_path) {
    return queue_layout(queue_kind::curator, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_priority(std::string lock_path) {
    return queue_layout(queue_kind::curator_priority, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_delay(std::string lock_path) {
    return queue_layout(queue_kind::curator_delay, checked(std::move(lock_path)));
}
queue_layout queue_layout::curator_id(std::string lock_path) {
    return queue_layout(queue_kind::curator_id, checked(std::move(lock_path)));
}

}  // namespace zkasio
