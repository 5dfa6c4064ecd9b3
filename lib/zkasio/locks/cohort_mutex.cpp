#include <zkasio/locks/cohort_mutex.hpp>

#include <zkasio/locks/detail/cohort/take_turn.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>

#include <utility>

namespace zkasio {

using namespace lock_detail;

namespace {

[[noreturn]] void refuse(std::string_view why) { throw error(errc::invalid_argument, "cohort_mutex", {}, why); }

}  // namespace

cohort_mutex_options& cohort_mutex_options::turns(std::uint64_t most) {
    if (most == 0) refuse("a cohort takes one turn at least");
    turns_ = most;
    return *this;
}

cohort_mutex_options& cohort_mutex_options::tenure(any_duration most) {
    const std::chrono::nanoseconds time = most;
    if (time < std::chrono::nanoseconds::zero()) refuse("a tenure is not negative");
    tenure_ = time;
    return *this;
}

cohort_mutex_options& cohort_mutex_options::linger(any_duration most) {
    const std::chrono::nanoseconds time = most;
    if (time < std::chrono::nanoseconds::zero()) refuse("the time to linger is not negative");
    linger_ = time;
    return *this;
}

cohort_mutex::cohort_mutex(client zk, std::string path, cohort_mutex_options options)
    : lockable(std::move(zk), std::move(path)) {
    check_directory("cohort_mutex", on(), this->path());
    queue_names names(options.names(), options.names().mutex_marker(), {}, this->path());
    auto lock = std::make_shared<const lock_spec>(this->path(), std::move(names), options.data(), options.acl(),
                                                  options.names().directory_stays());
    tenure_limits limits;
    limits.turns = options.turns();
    limits.tenure = options.tenure();
    limits.linger = options.linger();
    spec_ = std::make_shared<const cohort_spec>(std::move(lock), limits);
}

// A waiting turn has no node that could go with its session: a later attempt of the same acquire is ahead of coroutines
// that came later.
lock_attempt cohort_mutex::attempts(acquire_options how) const {
    const auto came = std::make_shared<std::optional<boot_clock::time_point>>();
    return [zk = on(), spec = spec_, how = std::move(how), came](if_contended when_contended) {
        if (!*came) *came = boot_clock::now();
        return take_turn<std::optional<lock_guard>>(zk, spec, when_contended, how, **came);
    };
}

asio::awaitable<lock_guard> cohort_mutex::wait_for_lock(acquire_options how) const {
    return take_turn<lock_guard>(on(), spec_, if_contended::wait, how);
}

asio::awaitable<std::vector<contender_info>> cohort_mutex::contenders() const {
    return lock_detail::contenders(on(), spec_ ? spec_->lock : nullptr);
}

}  // namespace zkasio
