#include <zkasio/locks/unfair_mutex.hpp>

#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/finish_acquire.hpp>
#include <zkasio/locks/detail/local_mutex.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/recipe/if_exists.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
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

// Removes the node with this czxid, and no other of the same name: if an operator has deleted our node, or if the
// answer to the removal is lost, the existing node may be the next holder's.
asio::awaitable<void> remove_ours(session on, std::string path, std::int64_t czxid) {
    auto attempt = [&]() -> asio::awaitable<void> {
        co_await on.sync(path);  // a server that lags behind still shows what is gone
        const auto there = co_await on.exists(path);
        if (there && there->czxid == czxid) co_await on.remove(path);
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), attempt);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
}

// The node, and this session's right to create one. The next contender of this session tries when the node is certain
// to be gone and the bodies under the lost lock have ended.
class unfair_claim final : public lock_claim {
public:
    unfair_claim(session on, std::string path, std::int64_t czxid, std::shared_ptr<local_mutex::claim> local,
                 boot_clock::time_point asked)
        : state_(std::make_shared<state>(std::move(on), std::move(path), czxid, std::move(local), asked)) {
        const std::shared_ptr<const session_hold> hold(state_, &state_->hold);
        when_lost(state_->on, hold, [weak = std::weak_ptr<state>(state_)](loss_reason) {
            if (const auto lost = weak.lock()) state::remove_node(lost);
        });
    }
    ~unfair_claim() override { give_up(); }

    const session_hold& hold() const noexcept override { return state_->hold; }
    const std::vector<std::string>& paths() const noexcept override { return state_->paths; }
    const session& on() const noexcept override { return state_->on; }
    std::int64_t token() const noexcept override { return state_->token; }
    bool proves() const noexcept override { return false; }
    void body_begins(asio::any_io_executor e) override {
        state_->bodies.announce();
        state_->local->body_begins(std::move(e));
    }
    void body_ends(asio::any_io_executor e) noexcept override {
        state_->local->body_ends(e);
        state_->on_strand([e](state& s) {
            s.bodies.end(e);
            s.let_next_try();
        });
    }
    void give_up() noexcept override {
        if (std::exchange(given_up_, true)) return;
        state_->hold.end();
        state_->on_strand([](state& s) {
            s.given_up = true;
            s.let_next_try();
        });
        state::remove_node(state_);
    }
    asio::awaitable<void> gone() override {
        const auto s = state_;
        co_await wait_as(s->done, "release", s->paths.front());
        if (s->failed) std::rethrow_exception(s->failed);
    }

private:
    struct state : std::enable_shared_from_this<state> {
        state(session s, std::string path, std::int64_t czxid, std::shared_ptr<local_mutex::claim> l,
              boot_clock::time_point asked)
            : on(std::move(s)),
              paths(1, std::move(path)),
              hold(on.hold(paths)),
              token(czxid),
              local(std::move(l)),
              report(on, paths.front(), czxid, asked),
              done(toolbox(on).make_one_shot_event()) {}

        template <class F>
        void on_strand(F f) noexcept {
            try {
                asio::dispatch(on.get_executor(), [self = shared_from_this(), f] { f(*self); });
            } catch (...) {
                // Out of memory: no other contender of this session gets the lock.
            }
        }
        void let_next_try() noexcept {
            if (!given_up && bodies.any()) return;
            if (removing) local->about_to_release();
            if (removed) local->release();
        }
        // Only the first call has an effect.
        static void remove_node(const std::shared_ptr<state>& self) noexcept {
            if (self->removing.exchange(true)) return;
            self->report.end(self->hold.reason());
            self->on_strand([](state& s) { s.let_next_try(); });
            try {
                toolbox(self->on).run_in_background(remove(self));
            } catch (...) {
                // Out of memory: the node goes with the session.
            }
        }
        static asio::awaitable<void> remove(std::shared_ptr<state> self) {
            std::optional<error> refused;
            try {
                co_await remove_ours(self->on, self->paths.front(), self->token);
            } catch (const error& e) {
                self->failed = std::current_exception();
                refused = e;
            } catch (...) {
                self->failed = std::current_exception();
            }
            self->removed = true;
            self->let_next_try();
            self->done.fire();
            if (refused && refused->code() != condition::session_ended) throw error(*refused);  // so that it is logged
        }

        session on;
        std::vector<std::string> paths;
        session_hold hold;
        std::int64_t token;
        std::shared_ptr<local_mutex::claim> local;
        reported_hold report;
        running_bodies bodies;
        std::atomic<bool> removing{false};
        one_shot_event done;
        std::exception_ptr failed;               // written before `done` is fired
        bool removed = false, given_up = false;  // strand
    };

    std::shared_ptr<state> state_;
    bool given_up_ = false;
};

std::chrono::nanoseconds random_up_to(std::chrono::milliseconds most) {
    thread_local std::minstd_rand engine{std::random_device{}()};
    return std::chrono::nanoseconds(
        std::uniform_int_distribution<std::int64_t>(0, std::chrono::nanoseconds(most).count())(engine));
}

// An attempt to create the node. If its outcome is unknown at the end, a node that turns out to be ours is removed.
class attempt {
public:
    attempt(session on, std::string path, std::shared_ptr<local_mutex::claim> local)
        : on_(std::move(on)), path_(std::move(path)), local_(std::move(local)) {}
    attempt(const attempt&) = delete;
    attempt& operator=(const attempt&) = delete;
    ~attempt() {
        if (!uncertain_) return;
        try {
            toolbox(on_).run_in_background(clean_up(on_, path_, local_));
        } catch (...) {
            // Out of memory: the node goes with the session.
        }
    }

    /// Creates the node and returns its czxid; nothing when another contender has the lock.
    asio::awaitable<std::optional<std::int64_t>> create(unfair_mutex_options options) {
        create_options how;
        how.mode(create_mode::ephemeral).acl(options.acl()).parents(missing_parents::create_container);
        zkasio::back_off pauses = toolbox(on_).make_back_off();
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
                again = !lost && e.code() == condition::retryable;
                const bool taken = e.code() == zk_errc::node_exists;
                if (!e.outcome_unknown()) uncertain_ = false;
                if (!lost && !taken && !again) throw;
            }
            if (lost) {
                const std::optional<node_stat> there = co_await look(on_, path_);
                if (there && there->ephemeral_owner == on_.id()) czxid = there->czxid;
                again = !there;  // the create was not carried out
            }
            if (again) co_await pauses.pause();
        }
        uncertain_ = false;
        co_return czxid;
    }

private:
    // The node. Only one contender of this session tries at a time: a node of this session is ours.
    static asio::awaitable<std::optional<node_stat>> look(session on, std::string path) {
        auto ask = [&]() -> asio::awaitable<std::optional<node_stat>> {
            co_await on.sync(path);
            co_return co_await on.exists(path);
        };
        std::optional<node_stat> there;
        try {
            there = co_await retry_until_certain(toolbox(on).make_back_off(), ask);
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
        }
        co_return there;
    }
    // Until the clean-up is done, no other contender of this session may try.
    static asio::awaitable<void> clean_up(session on, std::string path, std::shared_ptr<local_mutex::claim> local) {
        const std::optional<node_stat> there = co_await look(on, path);
        if (there && there->ephemeral_owner == on.id()) co_await remove_ours(on, path, there->czxid);
        local->release();
    }

    session on_;
    std::string path_;
    std::shared_ptr<local_mutex::claim> local_;
    bool uncertain_ = false;
};

// Null: another contender has the lock.
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
    co_return info_of(std::move(path), std::move(*node));
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
