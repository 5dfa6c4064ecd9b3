#include <zkasio/locks/mutex.hpp>

#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>

namespace zkasio {

using namespace lock_detail;

mutex::mutex(client zk, std::string path, mutex_options options) : lockable("mutex", std::move(zk), std::move(path)) {
    std::string directory = this->directory();
    queue_names names(options.names(), options.names().mutex_marker(), {}, directory);
    spec_ = std::make_shared<const lock_spec>(std::move(directory), std::move(names), options.data(), options.acl(),
                                              options.names().directory_stays());
}

lock_attempt mutex::attempts(acquire_options how) const {
    return [zk = on(), spec = spec_, how = std::move(how)](if_contended when_contended) {
        return contend<std::optional<lock_guard>>(zk, acquire_request(spec, lock_kind::exclusive, when_contended), how);
    };
}

asio::awaitable<lock_guard> mutex::wait_for_lock(acquire_options how) const {
    return contend<lock_guard>(on(), acquire_request(spec_, lock_kind::exclusive), std::move(how));
}

std::exception_ptr mutex::refusal() const { return refusal_without_id(spec_, path()); }

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return lock_detail::contenders(view(), path(), spec_);
}

}  // namespace zkasio
