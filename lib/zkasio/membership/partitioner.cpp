#include <zkasio/membership/partitioner.hpp>

#include <zkasio/error.hpp>
#include <zkasio/membership/detail/partition_table.hpp>
#include <zkasio/membership/detail/partition_work.hpp>
#include <zkasio/path.hpp>

#include <utility>

namespace zkasio {

using namespace membership_detail;

std::string_view to_string(partitioner_state s) noexcept {
    switch (s) {
        case partitioner_state::idle: return "idle";
        case partitioner_state::allocating: return "allocating";
        case partitioner_state::acquired: return "acquired";
        case partitioner_state::releasing: return "releasing";
    }
    return "unknown";
}

namespace {

std::string checked_partitioner_path(std::string path) {
    require_directory("partitioner", path);
    return path;
}

}  // namespace

partitioner::partitioner(client zk, std::string path, std::vector<std::string> partitions, partitioner_options options)
    : zk_(std::move(zk)),
      path_(checked_partitioner_path(std::move(path))),
      options_(std::move(options)),
      table_(std::make_shared<partition_table>(checked_partitions(path_, std::move(partitions)))) {
    if (!options_.assignment()) throw error(errc::invalid_argument, "partitioner", path_, "the assignment is empty");
}

partitioner_state partitioner::state() const noexcept { return table_ ? table_->state() : partitioner_state::idle; }

std::vector<std::string> partitioner::owned() const {
    return table_ ? table_->owned() : std::vector<std::string>();
}

asio::awaitable<void> membership_detail::run_partitioner(partition_body body, client zk, std::string path,
                                                         partitioner_options options,
                                                         std::shared_ptr<partition_table> table) {
    if (!table) throw error(errc::invalid_argument, "partitioner", {}, "this partitioner was moved from");
    if (!body) throw error(errc::invalid_argument, "partitioner", path, "the body is empty");
    table->begin(path);
    const std::unique_ptr<partition_table, void (*)(partition_table*)> running(
        table.get(), [](partition_table* t) { t->end(); });
    partition_work work(body, std::move(zk), std::move(path), std::move(options), *table);
    auto divide = [&work](task_scope& tasks) { return work.divide(tasks); };
    co_await with_task_scope(divide);
}

}  // namespace zkasio
