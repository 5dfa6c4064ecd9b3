#include <zkasio/recipes/mutex.hpp>

#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/contenders.hpp>
#include <zkasio/recipes/detail/timed.hpp>

namespace zkasio {

using namespace recipes::detail;

namespace {

lock_attempt attempts(client zk, lock_spec_ptr spec, acquire_options how) {
    return [zk = std::move(zk), spec = std::move(spec), how = std::move(how)](patience how_long) {
        return contend<std::optional<lock_guard>>(zk, wish(spec, lock_kind::exclusive, how_long), how);
    };
}

}  // namespace

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
    return acquire_within(zk_, "try_acquire_for", path_, time_limit::after(limit), attempts(zk_, spec_, std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_until(boot_clock::time_point limit, acquire_options how) const {
    return acquire_within(zk_, "try_acquire_until", path_, time_limit::at(limit), attempts(zk_, spec_, std::move(how)));
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return recipes::detail::contenders(zk_, spec_);
}

}  // namespace zkasio
