#include <zkasio/locks/mutex.hpp>

#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/in_view.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>

namespace zkasio {

using namespace lock_detail;

mutex::mutex(client zk, std::string path, mutex_options options) : lockable(std::move(zk), std::move(path)) {
    check_directory("mutex", on(), this->path());
    const std::string directory = whole_path(on(), this->path());
    queue_names names(options.names(), options.names().mutex_marker(), {}, directory);
    spec_ = std::make_shared<const lock_spec>(directory, std::move(names), options.data(), options.acl(),
                                              options.names().directory_stays());
}

lock_attempt mutex::attempts(acquire_options how) const {
    auto attempt = [zk = on().unrooted(), spec = spec_, how = for_client(on(), std::move(how))](
                       if_contended when_contended) {
        return contend<std::optional<lock_guard>>(zk, acquire_request(spec, lock_kind::exclusive, when_contended), how);
    };
    return in_view(on(), std::move(attempt));
}

asio::awaitable<lock_guard> mutex::wait_for_lock(acquire_options how) const {
    acquire_request what(spec_, lock_kind::exclusive);
    return in_view(on(), contend<lock_guard>(on().unrooted(), std::move(what), for_client(on(), std::move(how))));
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return lock_detail::contenders(on(), path(), spec_);
}

}  // namespace zkasio
