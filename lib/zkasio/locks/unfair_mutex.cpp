#include <zkasio/locks/unfair_mutex.hpp>

#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/local_mutex.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/retry_until_certain.hpp>
#include <zkasio/wait_as.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <random>

namespace zkasio {

using namespace lock_detail;

unfair_mutex_options& unfair_mutex_options::back_off(std::chrono::milliseconds first, std::chrono::milliseconds most) {
    if (first < std::chrono::milliseconds::zero() || most < first || most > std::chrono::hours(24))
        throw error(errc::invalid_argument, "unfair_mutex", {},
                    "a back-off is not negative, does not shrink, and ends within a day");
    first_ = first;
    most_ = most;
    return *this;
}

namespace {

// Removes the node with this czxid, and no other of the same name: when an operator has deleted ours, or when the
// answer to the removal is lost, the node that is there may be the next holder's.
asio::awaitable<void> remove_ours(session on, std::string path, std::int64_t czxid) {
    auto attempt = [&]() -> asio::awaitable<void> {
        co_await on.sync(path);  // a server that lags behind still shows what is gone
        const auto there = co_await on.exists(path);
        if (there && there->czxid == czxid) co_await on.remove(path);
    };
    try {
        co_await retry_until_certain(on.make_back_off(), attempt);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
}

// The node, and the right to have one: the next of this session tries when the node is certain to be gone.
class unfair_claim final : public lock_claim {
public:
    unfair_claim(session on, std::string path, std::int64_t czxid, std::shared_ptr<local_mutex::claim> local,
                 boot_clock::time_point asked)
        : on_(std::move(on)),
          paths_(1, std::move(path)),
          hold_(on_.hold(paths_)),
          token_(czxid),
          local_(std::move(local)),
          removal_(std::make_shared<removal>(on_)),
          report_(on_, paths_.front(), czxid, asked) {}
    ~unfair_claim() override { give_up(); }

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return token_; }
    bool proves() const noexcept override { return false; }
    void body_begins(asio::any_io_executor e) override { local_->body_begins(std::move(e)); }
    void body_ends(asio::any_io_executor e) noexcept override { local_->body_ends(std::move(e)); }
    void give_up() noexcept override {
        if (std::exchange(given_up_, true)) return;
        hold_.end();
        report_.end(hold_.reason());
        local_->about_to_release();
        try {
            on_.run_in_background(remove(on_, paths_.front(), token_, local_, removal_));  // its body may still run
        } catch (...) {
            // Out of memory: the node goes with the session.
        }
    }
    asio::awaitable<void> gone() override {
        const auto r = removal_;
        co_await wait_as(r->done, "release", paths_.front());
        if (r->failed) std::rethrow_exception(r->failed);
    }

private:
    struct removal {
        explicit removal(const session& on) : done(on.make_one_shot_event()) {}
        one_shot_event done;
        std::exception_ptr failed;
    };
    static asio::awaitable<void> remove(session on, std::string path, std::int64_t czxid,
                                        std::shared_ptr<local_mutex::claim> local, std::shared_ptr<removal> r) {
        std::optional<error> refused;
        try {
            co_await remove_ours(on, path, czxid);
        } catch (const error& e) {
            r->failed = std::current_exception();
            refused = e;
        } catch (...) {
            r->failed = std::current_exception();
        }
        local->release();
        r->done.fire();
        if (refused && refused->code() != condition::session_ended) throw error(*refused);  // so that it is logged
    }

    session on_;
    std::vector<std::string> paths_;
    session_hold hold_;
    std::int64_t token_;
    std::shared_ptr<local_mutex::claim> local_;
    std::shared_ptr<removal> removal_;
    reported_hold report_;
    bool given_up_ = false;
};

std::chrono::nanoseconds random_up_to(std::chrono::milliseconds most) {
    thread_local std::minstd_rand engine{std::random_device{}()};
    return std::chrono::nanoseconds(
        std::uniform_int_distribution<std::int64_t>(0, std::chrono::nanoseconds(most).count())(engine));
}

// Removes the node in the end if it should turn out to be ours, unless told otherwise.
class attempt {
public:
    attempt(session on, std::string path, std::shared_ptr<local_mutex::claim> local)
        : on_(std::move(on)), path_(std::move(path)), local_(std::move(local)) {}
    attempt(const attempt&) = delete;
    attempt& operator=(const attempt&) = delete;
    ~attempt() {
        if (!uncertain_) return;
        try {
            on_.run_in_background(clean_up(on_, path_, local_));
        } catch (...) {
            // Out of memory: the node goes with the session.
        }
    }

    /// Creates the node. Its czxid; nothing when somebody has it.
    asio::awaitable<std::optional<std::int64_t>> create(unfair_mutex_options options) {
        create_options how;
        how.mode(create_mode::ephemeral).acl(options.acl()).parents(missing_parents::create_container);
        zkasio::back_off pauses = on_.make_back_off();
        std::optional<std::int64_t> czxid;
        for (bool again = true; again;) {
            bool lost = false;
            again = false;
            uncertain_ = true;
            try {
                const created node = co_await on_.create(path_, bytes(options.data()), how);
                czxid = node.stat.czxid;
            } catch (const error& e) {
                lost = e.outcome_unknown() && e.code() == condition::retryable;
                again = e.code() == zk_errc::throttled;
                const bool taken = e.code() == zk_errc::node_exists;
                if (!e.outcome_unknown()) uncertain_ = false;
                if (!lost && !taken && !again) throw;
            }
            if (again) co_await pauses.pause();
            if (lost) czxid = co_await ours(on_, path_);
        }
        uncertain_ = false;
        co_return czxid;
    }

private:
    // Only one of this session tries at a time: if the node is this session's, it is ours.
    static asio::awaitable<std::optional<std::int64_t>> ours(session on, std::string path) {
        auto look = [&]() -> asio::awaitable<std::optional<node_stat>> {
            co_await on.sync(path);
            co_return co_await on.exists(path);
        };
        std::optional<node_stat> there;
        try {
            there = co_await retry_until_certain(on.make_back_off(), look);
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
        }
        if (!there || there->ephemeral_owner != on.id()) co_return std::nullopt;
        co_return there->czxid;
    }
    // Until that is done nobody else of this session may try.
    static asio::awaitable<void> clean_up(session on, std::string path, std::shared_ptr<local_mutex::claim> local) {
        const std::optional<std::int64_t> czxid = co_await ours(on, path);
        if (czxid) co_await remove_ours(on, path, *czxid);
        local->release();
    }

    session on_;
    std::string path_;
    std::shared_ptr<local_mutex::claim> local_;
    bool uncertain_ = false;
};

// Null: somebody else has it.
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
        attempt a(waits, path, local);
        const auto czxid = co_await a.create(options);
        if (czxid) co_return std::make_shared<unfair_claim>(on, path, *czxid, local, asked);
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
    const session on = co_await zk.current_session("acquire", path);
    for (;;) {
        const std::shared_ptr<lock_claim> claim = co_await contend_for_node(on, path, options, when_contended);
        bool over = !claim;
        if (!over) over = co_await covered(claim);
        if (over) co_return to_guard(claim, zk);
    }
}

asio::awaitable<std::optional<contender_info>> holder_of(client zk, std::string path) {
    node_data node;
    std::error_code gone;
    try {
        node = co_await zk.get(path);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
        gone = e.code();
    }
    if (gone) co_return std::nullopt;
    co_return info_of(std::move(path), std::move(node));
}

}  // namespace

unfair_mutex::unfair_mutex(client zk, std::string path, unfair_mutex_options options)
    : lockable(std::move(zk), std::move(path)), options_(std::move(options)) {
    check_directory("unfair_mutex", on(), this->path());
}

lock_attempt unfair_mutex::attempts(acquire_options how) const {
    return [zk = on(), path = path(), options = options_, how = std::move(how)](if_contended when_contended) {
        return reported(named(take(zk, path, options, how, when_contended), path), zk, path);
    };
}

asio::awaitable<std::optional<contender_info>> unfair_mutex::holder() const { return holder_of(on(), path()); }

}  // namespace zkasio
