#include <zkasio/recipes/mutex.hpp>

#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/contenders.hpp>
#include <zkasio/recipes/detail/timed.hpp>

namespace zkasio {

using namespace recipes::detail;

mutex::mutex(client zk, std::string path, mutex_options options) : zk_(std::move(zk)), path_(std::move(path)) {
    check_directory("mutex", path_);
    queue_names names(options.names(), options.names().mutex_marker(), {}, path_);
    spec_ = std::make_shared<const lock_spec>(path_, std::move(names), options.data(), options.acl());
}

asio::awaitable<lock_guard> mutex::acquire(acquire_options how) const {
    return contend<lock_guard>(zk_, wish(spec_, lock_kind::exclusive), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire(acquire_options how) const {
    return contend<std::optional<lock_guard>>(zk_, wish(spec_, lock_kind::exclusive, patience::first_or_nothing), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_for(std::chrono::nanoseconds limit, acquire_options how) const {
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire(std::move(how));
    return try_acquire_until(limit_after(limit, path_), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_until(boot_clock::time_point limit, acquire_options how) const {
    return acquire_until(zk_, path_, limit, [self = *this, how = std::move(how)] { return self.acquire(how); });
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return recipes::detail::contenders(zk_, spec_);
}

}  // namespace zkasio
