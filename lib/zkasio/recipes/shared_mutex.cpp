#include <zkasio/recipes/shared_mutex.hpp>

#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/contenders.hpp>
#include <zkasio/recipes/detail/timed.hpp>

namespace zkasio {

using namespace recipes::detail;

namespace {

queue_names names_of(const shared_mutex_options& o, const std::string& path) {
    return {o.names(), o.names().write_marker(), o.names().read_marker(), path};
}

asio::awaitable<std::shared_ptr<lock_claim>> acquire_claim(client zk, std::string path, shared_mutex_options options, lock_kind kind,
                                                           acquire_options how, patience how_long) {
    wish what = make_wish(kind, how_long, options.data(), options.acl(), how);
    what.join_readers = kind == lock_kind::shared && options.prefers_readers();
    return contend_as(std::move(zk), std::move(how), path, names_of(options, path), std::move(what));
}

}  // namespace

shared_mutex::shared_mutex(client zk, std::string path, shared_mutex_options options)
    : zk_(std::move(zk)), path_(std::move(path)), options_(std::move(options)) {
    check_directory("shared_mutex", path_);
    if (options_.names().read_marker().empty())
        throw error(errc::invalid_argument, "shared_mutex", path_, "this name_scheme has no marker for readers");
}

asio::awaitable<lock_guard> shared_mutex::acquire(acquire_options how) const {
    co_return lock_guard(co_await acquire_claim(zk_, path_, options_, lock_kind::exclusive, std::move(how), patience::wait));
}

asio::awaitable<lock_guard> shared_mutex::acquire_shared(acquire_options how) const {
    co_return lock_guard(co_await acquire_claim(zk_, path_, options_, lock_kind::shared, std::move(how), patience::wait));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire(acquire_options how) const {
    co_return to_guard(
        co_await acquire_claim(zk_, path_, options_, lock_kind::exclusive, std::move(how), patience::first_or_nothing));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared(acquire_options how) const {
    co_return to_guard(co_await acquire_claim(zk_, path_, options_, lock_kind::shared, std::move(how), patience::first_or_nothing));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_for(std::chrono::nanoseconds limit, acquire_options how) const {
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire(std::move(how));
    return try_acquire_until(limit_after(limit, path_), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_until(boot_clock::time_point limit, acquire_options how) const {
    return acquire_until(zk_, path_, limit, [self = *this, how = std::move(how)] { return self.acquire(how); });
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared_for(std::chrono::nanoseconds limit,
                                                                                acquire_options how) const {
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire_shared(std::move(how));
    return try_acquire_shared_until(limit_after(limit, path_), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared_until(boot_clock::time_point limit,
                                                                                  acquire_options how) const {
    return acquire_until(zk_, path_, limit, [self = *this, how = std::move(how)] { return self.acquire_shared(how); });
}

asio::awaitable<lock_guard> shared_mutex::downgrade(lock_guard writing) const {
    const auto claim = std::dynamic_pointer_cast<queue_claim>(writing.claim());
    if (!claim || claim->directory() != path_ || claim->kind() != lock_kind::exclusive)
        throw error(errc::invalid_argument, "downgrade", path_, "not a writer's guard of this lock, or one of a lock_owner");
    if (!writing.held()) throw error(errc::lock_lost, "downgrade", writing.path(), to_string(writing.reason()));
    std::string data = options_.data();
    acl entries = options_.acl();
    co_return lock_guard(co_await claim->downgrade(std::move(data), std::move(entries)));
}

asio::awaitable<std::vector<contender_info>> shared_mutex::contenders() const {
    return recipes::detail::contenders(zk_, path_, names_of(options_, path_));
}

}  // namespace zkasio
