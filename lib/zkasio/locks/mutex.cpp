#include <zkasio/locks/mutex.hpp>

#include <zkasio/locks/detail/contend.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/timed.hpp>

namespace zkasio {

using namespace lock_detail;

namespace {

lock_attempt attempts(client zk, lock_spec_ptr spec, acquire_options how) {
    return [zk = std::move(zk), spec = std::move(spec), how = std::move(how)](if_contended when_contended) {
        return contend<std::optional<lock_guard>>(zk, acquire_request(spec, lock_kind::exclusive, when_contended), how);
    };
}

}  // namespace

mutex::mutex(client zk, std::string path, mutex_options options) : zk_(std::move(zk)), path_(std::move(path)) {
    check_directory("mutex", path_);
    queue_names names(options.names(), options.names().mutex_marker(), {}, path_);
    spec_ = std::make_shared<const lock_spec>(path_, std::move(names), options.data(), options.acl());
}

asio::awaitable<lock_guard> mutex::acquire(acquire_options how) const {
    return contend<lock_guard>(zk_, acquire_request(spec_, lock_kind::exclusive), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire(acquire_options how) const {
    return contend<std::optional<lock_guard>>(zk_, acquire_request(spec_, lock_kind::exclusive, if_contended::give_up),
                                              std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_for(std::chrono::nanoseconds limit,
                                                                  acquire_options how) const {
    return acquire_within(zk_, "try_acquire_for", path_, time_limit::after(limit),
                          attempts(zk_, spec_, std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_until(boot_clock::time_point limit,
                                                                    acquire_options how) const {
    return acquire_within(zk_, "try_acquire_until", path_, time_limit::at(limit), attempts(zk_, spec_, std::move(how)));
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return lock_detail::contenders(zk_, spec_);
}

}  // namespace zkasio
