#include <zkasio/recipes/mutex.hpp>

#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/contenders.hpp>
#include <zkasio/recipes/detail/timed.hpp>
#include <zkasio/recipes/detail/together.hpp>

namespace zkasio {

using namespace recipes::detail;

namespace {

queue_names names_of(const mutex_options& o, const std::string& path) { return {o.names(), o.names().mutex_marker(), {}, path}; }

asio::awaitable<std::shared_ptr<lock_claim>> acquire_claim(client zk, std::string path, mutex_options options, acquire_options how,
                                                           patience how_long) {
    wish what = make_wish(lock_kind::exclusive, how_long, options.data(), options.acl(), how);
    return contend_as(std::move(zk), std::move(how), path, names_of(options, path), std::move(what));
}

}  // namespace

mutex::mutex(client zk, std::string path, mutex_options options)
    : zk_(std::move(zk)), path_(std::move(path)), options_(std::move(options)) {
    check_directory("mutex", path_);
}

asio::awaitable<lock_guard> mutex::acquire(acquire_options how) const {
    co_return lock_guard(co_await acquire_claim(zk_, path_, options_, std::move(how), patience::wait));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire(acquire_options how) const {
    co_return to_guard(co_await acquire_claim(zk_, path_, options_, std::move(how), patience::first_or_nothing));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_for(std::chrono::nanoseconds limit, acquire_options how) const {
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire(std::move(how));
    return try_acquire_until(limit_after(limit, path_), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> mutex::try_acquire_until(boot_clock::time_point limit, acquire_options how) const {
    return acquire_until(zk_, path_, limit, [self = *this, how = std::move(how)] { return self.acquire(how); });
}

entry mutex::as_entry(bool wait) const {
    return {path_, names_of(options_, path_),
            make_wish(lock_kind::exclusive, wait ? patience::wait : patience::first_or_nothing, options_.data(), options_.acl(), {}),
            zk_.get_executor()};
}

asio::awaitable<std::vector<contender_info>> mutex::contenders() const {
    return recipes::detail::contenders(zk_, path_, names_of(options_, path_));
}

}  // namespace zkasio
