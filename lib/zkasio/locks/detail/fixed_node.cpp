#include <zkasio/locks/detail/fixed_node.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/guards_in_the_way.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <atomic>
#include <exception>
#include <utility>

namespace zkasio::lock_detail {

asio::awaitable<void> remove_fixed_node(session on, std::string path, std::int64_t czxid) {
    auto attempt = [&]() -> asio::awaitable<void> {
        const std::optional<node_stat> there = co_await newest_stat(on, path);
        if (there && there->czxid == czxid) co_await on.remove(path);
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), attempt);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
}

fixed_node_attempt::fixed_node_attempt(session on, std::string path, std::shared_ptr<const void> sole_right,
                                       std::function<asio::awaitable<void>(std::int64_t)> remove)
    : on_(std::move(on)), path_(std::move(path)), sole_right_(std::move(sole_right)), remove_(std::move(remove)) {}

fixed_node_attempt::~fixed_node_attempt() {
    if (!uncertain_) return;
    toolbox(on_).run_in_background(clean_up(on_, path_, sole_right_, remove_, orphan_));
}

asio::awaitable<std::optional<std::int64_t>> fixed_node_attempt::created(
    std::function<asio::awaitable<std::int64_t>()> create) {
    back_off pauses = toolbox(on_).make_back_off();
    std::optional<std::int64_t> czxid;
    orphan_ = co_await toolbox(on_).orphan_at(path_);
    for (bool again = true; again;) {
        bool lost = false;
        std::optional<error> hung_up;
        again = false;
        uncertain_ = true;
        try {
            czxid = co_await create();
        } catch (const error& e) {
            lost = e.outcome_unknown() && e.code() == condition::retryable;
            again = !lost && e.code() == condition::retryable;
            const bool taken = e.code() == zk_errc::node_exists;
            if (!e.outcome_unknown()) uncertain_ = false;
            if (!lost && !taken && !again) throw;
            if (e.hung_up()) hung_up.emplace(e);
        }
        if (lost) {
            const std::optional<node_stat> there = co_await newest_stat(on_, path_);
            if (there && there->ephemeral_owner == on_.id() && there->czxid != orphan_) {
                czxid = there->czxid;
                toolbox(on_).was_applied(path_);
            }
            again = !there;  // the create was not carried out
            if (again && hung_up) {
                uncertain_ = false;
                throw hung_up->not_applied();
            }
        }
        if (again) co_await pauses.pause();
    }
    uncertain_ = false;
    co_return czxid;
}

asio::awaitable<void> fixed_node_attempt::clean_up(session on, std::string path,
                                                   std::shared_ptr<const void> sole_right,
                                                   std::function<asio::awaitable<void>(std::int64_t)> remove,
                                                   std::optional<std::int64_t> orphan) {
    const std::optional<node_stat> there = co_await newest_stat(on, path);
    if (!there || there->ephemeral_owner != on.id() || there->czxid == orphan) co_return;
    try {
        co_await remove(there->czxid);
    } catch (const error& e) {
        if (e.code() == zk_errc::no_auth)
            toolbox(on).remove_when_allowed(path, [=, czxid = there->czxid] {
                [[maybe_unused]] const auto& kept = sole_right;
                return remove(czxid);
            });
        throw;  // so that it is logged
    }
}

struct fixed_node_claim::state : std::enable_shared_from_this<state> {
    state(session s, grant g, std::shared_ptr<local_slots::right> r)
        : on(std::move(s)),
          granted(std::move(g)),
          paths(1, granted.node),
          hold(on.hold(paths)),
          right(std::move(r)),
          report(on, granted.lock, granted.czxid, granted.asked),
          done(toolbox(on).make_one_shot_event()) {}

    template <class F>
    void on_strand(F f) noexcept {
        asio::dispatch(on.get_executor(), [self = shared_from_this(), f] { f(*self); });
    }
    void let_next_try() noexcept {
        if (!given_up && bodies.any()) return;
        if (removing && !refused) right->about_to_release();
        if (removed) right->release();
    }
    // Only the first call has an effect.
    static void remove_node(const std::shared_ptr<state>& self) noexcept {
        if (self->removing.exchange(true)) return;
        self->report.end(self->hold.reason());
        self->on_strand([](state& s) { s.let_next_try(); });
        toolbox(self->on).run_in_background(remove(self));
    }
    static asio::awaitable<void> remove(std::shared_ptr<state> self) {
        std::optional<error> failure;
        try {
            co_await self->granted.remove();
        } catch (const error& e) {
            self->failed = std::current_exception();
            failure = e;
        } catch (...) {
            self->failed = std::current_exception();
        }
        self->refused = failure && failure->code() == zk_errc::no_auth;
        if (self->refused) {
            self->right->not_about_to_release();
            toolbox(self->on).remove_when_allowed(self->granted.node, [self] { return remove_later(self); });
        } else {
            self->is_removed();
        }
        self->done.fire();
        if (failure && failure->code() != condition::session_ended) throw error(*failure);  // so that it is logged
    }
    // Until then the right stays: another attempt of this session could take the node for its own.
    static asio::awaitable<void> remove_later(std::shared_ptr<state> self) {
        try {
            co_await self->granted.remove();
        } catch (const error& e) {
            if (e.code() == zk_errc::no_auth || e.code() == condition::retryable) throw;  // asked for again
            self->is_removed();
            throw;
        }
        self->is_removed();
    }
    void is_removed() noexcept {
        removed = true;
        let_next_try();
    }

    session on;
    grant granted;
    std::vector<std::string> paths;
    session_hold hold;
    std::shared_ptr<local_slots::right> right;
    reported_hold report;
    running_bodies bodies;
    std::atomic<bool> removing{false};
    one_shot_event done;
    std::exception_ptr failed;               // written before `done` is fired
    bool removed = false, given_up = false;  // strand
    bool refused = false;                    // strand: by an ACL, so `removed` may be late
    std::shared_ptr<own_guards> among;       // strand
};

fixed_node_claim::fixed_node_claim(session on, grant granted, std::shared_ptr<local_slots::right> right)
    : state_(std::make_shared<state>(std::move(on), std::move(granted), std::move(right))) {
    asio::dispatch(state_->on.get_executor(), [s = state_] {
        s->among = own_guards::of(s->on, s->granted.lock);
        s->among->add(s->paths, std::shared_ptr<running_bodies>(s, &s->bodies));
    });
    const std::shared_ptr<const session_hold> hold(state_, &state_->hold);
    when_lost(state_->on, hold, [weak = std::weak_ptr<state>(state_)](loss_reason) {
        if (const auto lost = weak.lock()) state::remove_node(lost);
    });
}

const session_hold& fixed_node_claim::hold() const noexcept { return state_->hold; }
const std::vector<std::string>& fixed_node_claim::paths() const noexcept { return state_->paths; }
const session& fixed_node_claim::on() const noexcept { return state_->on; }
std::int64_t fixed_node_claim::token() const noexcept { return state_->granted.czxid; }
std::optional<std::uint32_t> fixed_node_claim::slot() const noexcept { return state_->granted.slot; }

void fixed_node_claim::body_begins(asio::any_io_executor executor) {
    state_->bodies.announce();
    asio::dispatch(state_->on.get_executor(),
                   [s = state_, executor = std::move(executor)] { s->bodies.begin(executor); });
}

void fixed_node_claim::body_ends(asio::any_io_executor executor) noexcept {
    state_->on_strand([executor](state& s) {
        s.bodies.end(executor);
        s.let_next_try();
    });
}

void fixed_node_claim::give_up() noexcept {
    if (std::exchange(given_up_, true)) return;
    state_->hold.end();
    state_->on_strand([](state& s) {
        s.given_up = true;
        s.among->drop(s.paths, s.bodies);
        s.let_next_try();
    });
    state::remove_node(state_);
}

asio::awaitable<void> fixed_node_claim::gone() {
    const auto s = state_;
    co_await errors_as("release", s->paths.front(), s->done.wait());
    if (s->failed) rethrow_to_caller(s->failed, "release", s->paths.front());
}

}  // namespace zkasio::lock_detail
