#include <zkasio/locks/shared_mutex.hpp>

#include <zkasio/locks/detail/contend.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/queue_claim.hpp>
#include <zkasio/locks/detail/timed.hpp>

namespace zkasio {

using namespace lock_detail;

namespace {

acquire_request reader(const lock_spec_ptr& spec, bool joins, if_contended when_contended = if_contended::wait) {
    acquire_request what(spec, lock_kind::shared, when_contended);
    what.join_readers = joins;
    return what;
}

lock_attempt attempts(client zk, acquire_request what, acquire_options how) {
    return [zk = std::move(zk), what = std::move(what), how = std::move(how)](if_contended when_contended) {
        acquire_request asked = what;
        asked.when_contended = when_contended;
        return contend<std::optional<lock_guard>>(zk, std::move(asked), how);
    };
}

}  // namespace

shared_mutex::shared_mutex(client zk, std::string path, shared_mutex_options options)
    : zk_(std::move(zk)), path_(std::move(path)), prefer_readers_(options.prefers_readers()) {
    check_directory("shared_mutex", path_);
    const name_scheme& scheme = options.names();
    if (scheme.read_marker().empty())
        throw error(errc::invalid_argument, "shared_mutex", path_, "this name_scheme has no marker for readers");
    queue_names names(scheme, scheme.write_marker(), scheme.read_marker(), path_);
    spec_ = std::make_shared<const lock_spec>(path_, std::move(names), options.data(), options.acl());
}

asio::awaitable<lock_guard> shared_mutex::acquire(acquire_options how) const {
    return contend<lock_guard>(zk_, acquire_request(spec_, lock_kind::exclusive), std::move(how));
}

asio::awaitable<lock_guard> shared_mutex::acquire_shared(acquire_options how) const {
    return contend<lock_guard>(zk_, reader(spec_, prefer_readers_), std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire(acquire_options how) const {
    return contend<std::optional<lock_guard>>(zk_, acquire_request(spec_, lock_kind::exclusive, if_contended::give_up),
                                              std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared(acquire_options how) const {
    return contend<std::optional<lock_guard>>(zk_, reader(spec_, prefer_readers_, if_contended::give_up),
                                              std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_for(std::chrono::nanoseconds limit,
                                                                         acquire_options how) const {
    return acquire_within(zk_, "try_acquire_for", path_, time_limit::after(limit),
                          attempts(zk_, acquire_request(spec_, lock_kind::exclusive), std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_until(boot_clock::time_point limit,
                                                                           acquire_options how) const {
    return acquire_within(zk_, "try_acquire_until", path_, time_limit::at(limit),
                          attempts(zk_, acquire_request(spec_, lock_kind::exclusive), std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared_for(std::chrono::nanoseconds limit,
                                                                                acquire_options how) const {
    return acquire_within(zk_, "try_acquire_shared_for", path_, time_limit::after(limit),
                          attempts(zk_, reader(spec_, prefer_readers_), std::move(how)));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_shared_until(boot_clock::time_point limit,
                                                                                  acquire_options how) const {
    return acquire_within(zk_, "try_acquire_shared_until", path_, time_limit::at(limit),
                          attempts(zk_, reader(spec_, prefer_readers_), std::move(how)));
}

asio::awaitable<lock_guard> shared_mutex::acquire(lock_kind kind, acquire_options how) const {
    return kind == lock_kind::exclusive ? acquire(std::move(how)) : acquire_shared(std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire(lock_kind kind, acquire_options how) const {
    return kind == lock_kind::exclusive ? try_acquire(std::move(how)) : try_acquire_shared(std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_for(lock_kind kind, std::chrono::nanoseconds limit,
                                                                         acquire_options how) const {
    return kind == lock_kind::exclusive ? try_acquire_for(limit, std::move(how))
                                        : try_acquire_shared_for(limit, std::move(how));
}

asio::awaitable<std::optional<lock_guard>> shared_mutex::try_acquire_until(lock_kind kind, boot_clock::time_point limit,
                                                                           acquire_options how) const {
    return kind == lock_kind::exclusive ? try_acquire_until(limit, std::move(how))
                                        : try_acquire_shared_until(limit, std::move(how));
}

namespace {

asio::awaitable<lock_guard> downgraded(lock_spec_ptr spec, std::string path, lock_guard writing) {
    const auto claim = std::dynamic_pointer_cast<queue_claim>(writing.claim());
    const bool writes = claim && claim->asked().kind == lock_kind::exclusive;
    // With the names of kazoo's a mutex may have the same directory; its names say nothing of readers.
    if (!writes || claim->asked().spec->directory != path || claim->asked().spec->names.key() != spec->names.key())
        throw error(errc::invalid_argument, "downgrade", path,
                    "not a writer's guard of this lock, or one of a lock_owner");
    if (!writing.held()) throw error(errc::lock_lost, "downgrade", writing.path(), why_not_held(writing.reason()));
    co_return lock_guard(co_await claim->downgrade(spec));
}

}  // namespace

asio::awaitable<lock_guard> shared_mutex::downgrade(lock_guard writing) const {
    return downgraded(spec_, path_, std::move(writing));
}

asio::awaitable<std::vector<contender_info>> shared_mutex::contenders() const {
    return lock_detail::contenders(zk_, spec_);
}

}  // namespace zkasio
