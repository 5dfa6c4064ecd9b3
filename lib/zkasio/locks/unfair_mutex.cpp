#include <zkasio/locks/unfair_mutex.hpp>

#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/fixed_node.hpp>
#include <zkasio/locks/detail/fixed_node_claim.hpp>
#include <zkasio/locks/detail/local_mutex.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <random>

namespace zkasio {

using namespace lock_detail;

unfair_mutex_options& unfair_mutex_options::back_off(any_duration first, any_duration most) {
    const std::chrono::milliseconds one = first, longest = most;
    if (one < one.zero() || longest < one || longest > std::chrono::hours(24))
        throw error(errc::invalid_argument, "unfair_mutex", {},
                    "a back-off is not negative, does not shrink, and ends within a day");
    first_ = one;
    most_ = longest;
    return *this;
}

namespace {

std::chrono::nanoseconds random_up_to(std::chrono::milliseconds most) {
    thread_local std::minstd_rand engine{std::random_device{}()};
    return std::chrono::nanoseconds(
        std::uniform_int_distribution<std::int64_t>(0, std::chrono::nanoseconds(most).count())(engine));
}

asio::awaitable<std::int64_t> create_node(session on, std::string path, unfair_mutex_options options) {
    create_options how;
    how.mode(create_mode::ephemeral).acl(options.acl()).parents(missing_parents::create_container);
    const created node = co_await on.create(path, bytes(options.data()), how);
    co_return node.stat.czxid;
}

// Returns null if another contender has the lock and this one was not to wait.
asio::awaitable<std::shared_ptr<lock_claim>> contend_for_node(session on, std::string path,
                                                              unfair_mutex_options options,
                                                              if_contended when_contended) {
    const boot_clock::time_point asked = boot_clock::now();
    const auto local = std::make_shared<local_mutex::claim>(on, path, co_await asio::this_coro::executor);
    if (when_contended == if_contended::give_up) {
        const bool first = co_await local->uncontended();
        if (!first) co_return nullptr;
    }
    co_await local->acquired();
    const session waits = on.patient();
    auto back_off = options.first_back_off();
    for (;;) {
        const auto remove = [waits, path](std::int64_t czxid) { return remove_fixed_node(waits, path, czxid); };
        fixed_node_attempt attempt(waits, path, local, remove);
        std::function<asio::awaitable<std::int64_t>()> create = [&] { return create_node(waits, path, options); };
        const auto czxid = co_await attempt.created(std::move(create));
        if (czxid) {
            fixed_node_claim::grant granted;
            granted.lock = granted.node = path;
            granted.czxid = *czxid;
            granted.asked = asked;
            granted.remove = [remove, czxid] { return remove(*czxid); };
            co_return std::make_shared<fixed_node_claim>(on, std::move(granted), local);
        }
        if (when_contended == if_contended::give_up) co_return nullptr;
        const auto seen = co_await waits.exists_and_watch(path);
        if (!seen.value) continue;
        co_await seen.changes.changed();
        asio::steady_timer timer(co_await asio::this_coro::executor);
        timer.expires_after(random_up_to(back_off));
        co_await timer.async_wait(asio::use_awaitable);
        back_off = std::min(2 * back_off, options.most_back_off());
    }
}

asio::awaitable<std::optional<lock_guard>> take(client zk, std::string path, unfair_mutex_options options,
                                                acquire_options how, if_contended when_contended) {
    refuse_owner(how, path, "an unfair_mutex knows no lock_owner: use mutex");
    if (how.data()) options.data(*how.data());
    const session on = co_await toolbox(zk).current_session("acquire", path);
    for (;;) {
        const std::shared_ptr<lock_claim> claim = co_await contend_for_node(on, path, options, when_contended);
        bool over = !claim;
        if (!over) over = co_await wait_until_covered(claim);
        if (over) co_return to_guard(claim, zk);
    }
}

asio::awaitable<std::optional<contender_info>> holder_of(client zk, std::string path) {
    std::optional<node_data> node = co_await if_exists(zk.get(path));
    if (!node) co_return std::nullopt;
    contender_info holder = info_of(std::move(path), std::move(*node));
    holder.holds = true;
    co_return holder;
}

}  // namespace

unfair_mutex::unfair_mutex(client zk, std::string path, unfair_mutex_options options)
    : lockable(std::move(zk), std::move(path)), options_(std::move(options)) {
    check_directory("unfair_mutex", on(), this->path());
}

lock_attempt unfair_mutex::attempts(acquire_options how) const {
    return [zk = on(), path = path(), options = options_, how = std::move(how)](if_contended when_contended) {
        return reported(errors_as_acquire(take(zk, path, options, how, when_contended), path), zk, path);
    };
}

asio::awaitable<std::optional<contender_info>> unfair_mutex::holder() const { return holder_of(on(), path()); }

}  // namespace zkasio
