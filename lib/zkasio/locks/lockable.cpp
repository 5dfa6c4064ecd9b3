#include <zkasio/locks/lockable.hpp>

#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/timed.hpp>

namespace zkasio {

using namespace lock_detail;

lockable::~lockable() = default;

asio::awaitable<lock_guard> lockable::wait_for_lock(acquire_options how) const {
    return always(attempts(std::move(how))(if_contended::wait));
}

asio::awaitable<lock_guard> lockable::acquire(acquire_options how) const { return wait_for_lock(std::move(how)); }

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire(acquire_options how) const {
    return attempts(std::move(how))(if_contended::give_up);
}

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire_for(std::chrono::nanoseconds limit,
                                                                     acquire_options how) const {
    return acquire_within(zk_, "try_acquire_for", path_, time_limit::after(limit), attempts(std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> lockable::try_acquire_until(boot_clock::time_point limit,
                                                                       acquire_options how) const {
    return acquire_within(zk_, "try_acquire_until", path_, time_limit::at(limit), attempts(std::move(how)));
}

}  // namespace zkasio
