#include "simulation/lock_scenario.hpp"

#include <zkasio/path.hpp>

#include <asio/error.hpp>
#include <asio/this_coro.hpp>

#include <array>

namespace zkasio::test {

lock_scenario::lock_scenario(simulation& simulated, std::span<const lock_under_test> locks,
                             std::unique_ptr<checker> watching)
    : s(simulated), locks_(locks), watching_(std::move(watching)) {
    s.ensemble.on_commit = [this](const sim_txn& txn) {
        if (txn.ends_session)
            for (int n = 0; n < s.clients(); ++n)
                if (s.ensemble.session_of(n) == txn.session) expired_.insert(n);
        if (txn.session == 0 && !txn.changes.empty()) locks_are_lost_ = true;
        watching_->committed(txn);
    };
    s.ensemble.on_told_removed = [this](int client, const std::string& path, std::int64_t czxid) {
        watching_->told_removed(client, path, czxid);
    };
    s.losses = [this] { return watching_->losses(); };
    s.on_idle = [this] { watching_->check(); };
    s.on_quiet = [this] {
        watching_->check_quiet();
        for (int n = 0; n < s.clients(); ++n)
            if (!watching_->busy(n) && s.inside(n).watches() > 0)
                throw violation("a watch is left at client " + std::to_string(n));
    };
}

lock_scenario::~lock_scenario() {
    s.ensemble.on_commit = [](const sim_txn&) {};
    s.ensemble.on_told_removed = {};
    s.on_idle = s.on_quiet = [] {};
    s.losses = [] { return std::size_t{0}; };
}

// A lock without shares has a queue_checker, which compares with all nodes.
void lock_scenario::seen(std::size_t what) {
    if (locks_[what].shares.empty()) s.seen_by_all();
    for (const share& one : locks_[what].shares) s.seen_at(one.of);
}

void lock_scenario::granted(const std::string& id, const lock_guard& guard) {
    seen(asked_.at(id));
    watching_->granted(id, guard);
}

void lock_scenario::gives_up(const std::string& id) {
    seen(asked_.at(id));
    watching_->gives_up(id);
}

// ---------------------------------------------------------------------------------------------------- one attempt

// The checker hears of the grant in the same turn as the coroutine that has asked.
asio::awaitable<void> lock_scenario::ask(lock_scenario& self, client zk, std::string id, plan p, guard_ptr got,
                                         std::shared_ptr<const bool> cancelled) {
    if (p.how_to_cancel == asio::cancellation_type::partial)
        co_await asio::this_coro::reset_cancellation_state(asio::enable_partial_cancellation());
    if (p.how_to_cancel == asio::cancellation_type::total)
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    // That has forgotten a cancellation from before a late coroutine has begun.
    if (p.how_to_cancel != asio::cancellation_type::terminal && *cancelled)
        throw error(asio::error::operation_aborted, "acquire");
    const lock_under_test& lock = self.locks_[p.what];
    if (p.patient) {
        lock_guard guard = co_await lock.acquire(zk, id, p.kind);
        got->emplace(std::move(guard));
    } else {
        *got = co_await lock.try_acquire(zk, id, p.kind);
    }
    if (*got) {
        self.s.note("granted ", id);
        self.granted(id, **got);
    } else {
        self.gives_up(id);
    }
}

asio::awaitable<void> lock_scenario::work(lock_scenario& self, std::string id, std::size_t steps) {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    self.watching_->works(id, true);
    co_await self.s.pause(steps);
    self.watching_->works(id, false);
}

asio::awaitable<void> lock_scenario::work_under(lock_scenario& self, std::string id, std::size_t steps,
                                                guard_ptr guard) {
    std::function<asio::awaitable<void>()> body = [&] { return work(self, id, steps); };
    co_await (*guard)->run(body);
}

asio::awaitable<void> lock_scenario::release(guard_ptr guard) { co_await (*guard)->release(); }

asio::awaitable<void> lock_scenario::release_in_the_body(guard_ptr guard) {
    std::function<asio::awaitable<void>()> body = [guard] { return release(guard); };
    co_await (*guard)->run(body);
}

// A commit that is told that the lock is lost is what the guard says from then on.
asio::awaitable<void> lock_scenario::commit(int number, std::string id, guard_ptr guard) {
    std::error_code code;
    std::exception_ptr failed;
    try {
        transaction nothing;
        co_await (*guard)->commit(std::move(nothing));
    } catch (const std::system_error& e) {
        code = e.code();
        failed = std::current_exception();
    }
    s.note("commit ", id, ": ", code ? code.message() : "done");
    if (code == errc::lock_lost && (*guard)->held()) throw violation(id + " failed to commit, and still holds");
    if (code != condition::retryable) expect(number, id, failed, false);
}

void lock_scenario::expect(int client, const std::string& id, std::exception_ptr failed, bool cancelled) const {
    if (!failed) return;
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        if (cancelled && e.code() == condition::cancelled) return;
        if (expired_.contains(client) && (e.code() == condition::session_ended || e.code() == errc::lock_lost)) return;
        if (locks_are_lost_ && e.code() == errc::lock_lost) return;
        if (was_closed_ && e.code() == zk_errc::no_auth) return;
        // Each time a write was sent, the server has hung up; and a session may have been opened and ended unseen.
        if (time_ && (e.code() == condition::retryable || e.code() == condition::session_ended)) return;
        throw violation(id + " failed: " + e.what());
    }
}

void lock_scenario::cancel_later(int client, std::size_t steps, asio::cancellation_type how, const running& what,
                                 const std::string& id, const guard_ptr& got, std::shared_ptr<bool> cancelled) {
    // What is granted is granted, however late the task ends.
    s.after(steps, [this, how, task = what, weak = std::weak_ptr(got), cancelled, id]() mutable {
        const guard_ptr granted = weak.lock();
        if (task.ended() || (granted && *granted)) return;
        s.note("cancel ", id);
        *cancelled = true;
        gives_up(id);
        task.cancel(how);
    }, client);
}

asio::awaitable<void> lock_scenario::attempt(int number, plan p) {
    ++active_;
    co_await asking_and_holding(number, p);
    --active_;
}

asio::awaitable<void> lock_scenario::asking_and_holding(int number, plan p) {
    const client zk = s.client_number(number);
    std::string id = watching_->asks(number, locks_[p.what], p.kind, p.patient);
    asked_[id] = p.what;
    s.note(p.patient ? "acquire " : "try_acquire ", id, p.kind == lock_kind::shared ? " shared" : "");
    const auto got = std::make_shared<std::optional<lock_guard>>();
    const auto cancelled = std::make_shared<bool>(false);
    running asking(s.user_executor(number), ask(*this, zk, id, p, got, cancelled));
    if (p.cancel_after) cancel_later(number, *p.cancel_after, p.how_to_cancel, asking, id, got, cancelled);
    const std::exception_ptr failed = co_await asking.end();
    if (!*got) {
        s.note("not granted ", id);
        gives_up(id);
    }
    expect(number, id, failed, *cancelled);
    if (!*got) co_return;

    if (p.work) {
        const running working(s.user_executor(number), work_under(*this, id, p.hold, got));
        const std::exception_ptr lost = co_await working.end();
        expect(number, id, lost, false);
    } else {
        co_await s.pause(p.hold, number);
    }
    if (p.downgrade) {
        const bool holds = co_await go_on_as_reader(number, id, got, p);
        if (!holds) co_return;
        co_await s.pause(p.hold, number);
    }
    if (p.commit && (*got)->claim()->proves()) {
        co_await commit(number, id, got);
        co_await s.pause(p.hold, number);
    }
    s.note("release ", id);
    const loss_reason why = (*got)->reason();
    gives_up(id);
    if (p.end == ending::destroyed) {
        got->reset();
        co_return;
    }
    running releasing(s.user_executor(number), p.end == ending::in_the_body ? release_in_the_body(got) : release(got));
    if (p.end == ending::not_awaited) co_return;
    if (p.end == ending::cancelled_wait) s.after(s.pick(6), [releasing]() mutable { releasing.cancel(); }, number);
    const std::exception_ptr release_failed = co_await releasing.end();
    expect(number, id, release_failed, p.end == ending::cancelled_wait);
    // When time passes, a client may give its session up before the servers do.
    const bool is_over = time_ && (*got)->claim()->on().over();
    if (p.end == ending::awaited && why == loss_reason::none && !release_failed && !is_over) watching_->released(id);
}

asio::awaitable<void> lock_scenario::ask_for_downgrade(lock_scenario& self, client zk, std::string id, guard_ptr guard,
                                                       plan p) {
    lock_guard writing = std::move(**guard);
    guard->reset();
    lock_guard reading = co_await self.locks_[p.what].downgrade(zk, id, std::move(writing));
    guard->emplace(std::move(reading));
    self.s.note("granted ", id, " shared");
    self.granted(id, **guard);
}

asio::awaitable<bool> lock_scenario::go_on_as_reader(int number, std::string& id, guard_ptr guard, const plan& p) {
    gives_up(id);
    const fencing_token token = (*guard)->token();
    const std::string next = watching_->asks(number, locks_[p.what], lock_kind::shared, true);
    asked_[next] = p.what;
    s.note("downgrade ", id, " to ", next);
    id = next;
    running asking(s.user_executor(number), ask_for_downgrade(*this, s.client_number(number), id, guard, p));
    const auto cancelled = std::make_shared<bool>(false);
    if (p.cancel_downgrade_after)
        cancel_later(number, *p.cancel_downgrade_after, p.how_to_cancel, asking, id, guard, cancelled);
    const std::exception_ptr failed = co_await asking.end();
    if (!*guard) {
        s.note("not granted ", id);
        gives_up(id);
    }
    expect(number, id, failed, *cancelled);
    if (*guard && (*guard)->token() != token) throw violation(id + " has another token than the writer it was");
    co_return guard->has_value();
}

void lock_scenario::contend(int client, plan p) { s.spawn(attempt(client, p)); }

void lock_scenario::run_until(const std::function<bool()>& condition) {
    for (s.settle(); !condition(); s.settle())
        if (!s.step()) throw violation("what the test waits for does not happen");
}

// ------------------------------------------------------------------------------------------------------- at random

lock_scenario::plan lock_scenario::random_plan(const faults& f) {
    plan p;
    if (locks_.size() > 1) p.what = s.pick(locks_.size());
    const lock_under_test& lock = locks_[p.what];
    p.kind = lock.downgrade && s.chance(60) ? lock_kind::shared : lock_kind::exclusive;
    p.patient = s.chance(75);
    if (s.chance(25)) p.cancel_after = s.pick(s.chance(50) ? 12 : 120);
    p.hold = s.pick(s.chance(70) ? 4 : 30);
    p.end = static_cast<ending>(s.pick(4));
    p.downgrade = lock.downgrade && p.kind == lock_kind::exclusive && s.chance(40);
    if (s.chance(15)) p.cancel_downgrade_after = s.pick(10);
    p.work = f.bodies && s.chance(60);
    if (!f.all_sorts_of_users) return p;
    if (s.chance(10)) p.end = ending::in_the_body;
    p.commit = s.chance(30);
    p.how_to_cancel = std::array{asio::cancellation_type::terminal, asio::cancellation_type::partial,
                                 asio::cancellation_type::total}[s.pick(3)];
    return p;
}

asio::awaitable<void> lock_scenario::worker(int client, std::size_t rounds, faults f) {
    for (; rounds > 0; --rounds) {
        co_await s.pause(s.pick(25));
        co_await attempt(client, random_plan(f));
    }
    --working_;
}

asio::awaitable<void> lock_scenario::trouble(faults f) {
    for (int n = 0; n < 40 && working_ > 0; ++n) {
        co_await s.pause(5 + s.pick(60));
        const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
        const std::size_t what = s.pick(f.directory_deletes || f.hang_ups || f.closed_directories ? 5 : 4);
        if (what == 0 && f.drops) s.ensemble.drop_connection(victim);
        if (what == 1 && f.expiries && s.chance(50)) s.ensemble.expire(victim);
        if (what == 2 && f.operator_deletes && watching_->nodes_alive() > 0) {
            const std::string path = watching_->nth_node(s.pick(watching_->nodes_alive()));
            s.note("an operator deletes ", path);
            s.ensemble.operate(detail::remove_request{path, any_version});
        }
        if (what == 3 && f.containers) s.ensemble.remove_empty_containers();
        if (what == 4 && f.hang_ups) time_->hang_up(victim, std::chrono::milliseconds(s.pick(20'000)));
        if (what == 4 && f.closed_directories && watching_->nodes_alive() > 0)
            close_directory_of(watching_->nth_node(s.pick(watching_->nodes_alive())));
        if (what == 4 && f.directory_deletes && watching_->nodes_alive() > 0)
            delete_directory_of(watching_->nth_node(s.pick(watching_->nodes_alive())));
    }
    if (time_) time_->end_outages();
}

void lock_scenario::close_directory_of(const std::string& path) {
    const std::string directory(parent_path(path));
    s.note("an ACL refuses the removal of nodes in ", directory);
    const permission rest = permission::read | permission::write | permission::create | permission::admin;
    s.ensemble.operate(detail::set_acl_request{directory, acl_of(acl_entry(rest, anyone())), any_version});
    closed_.insert(directory);
    was_closed_ = true;
    s.after(s.pick(s.chance(50) ? 30 : 300), [this] { open_directories(); });
}

void lock_scenario::open_directories() {
    for (const std::string& directory : std::exchange(closed_, {})) {
        s.note("the ACL of ", directory, " is open again");
        s.ensemble.operate(detail::set_acl_request{directory, open_acl(), any_version});
    }
}

void lock_scenario::delete_directory_of(const std::string& path) {
    const std::string directory(parent_path(path));
    s.note("an operator deletes ", directory, " and all in it");
    for (const std::string& name : s.ensemble.tree().children(directory))
        s.ensemble.operate(detail::remove_request{join_path(directory, name), any_version});
    s.ensemble.operate(detail::remove_request{directory, any_version});
}

void lock_scenario::run_at_random(const faults& f) {
    s.let_users_be_late();
    if (f.hang_ups || f.closed_directories) let_time_pass();
    const std::size_t clients = 2 + s.pick(3);
    for (std::size_t n = 0; n < clients; ++n)
        s.add_client(f.drops_lose ? suspension_policy::lose : suspension_policy::keep);
    locks_are_lost_ = f.drops_lose || f.hang_ups || f.closed_directories;
    before_random_run();
    const std::size_t workers = 3 + s.pick(s.chance(80) ? 8 : 28);
    const std::size_t rounds = 1 + s.pick(4);
    for (std::size_t n = 0; n < workers; ++n) {
        ++working_;
        s.spawn(s.user_executor(), worker(static_cast<int>(s.pick(clients)), rounds, f));
    }
    if (f.drops || f.expiries || f.operator_deletes || f.directory_deletes || f.hang_ups || f.containers ||
        f.closed_directories)
        s.spawn(trouble(f));
    if (time_) time_->pass_while([this] { return working_ > 0; });
    finish();
}

// While a client pauses before it connects, the ensemble has nothing to do, and contenders may wait.
void lock_scenario::let_time_pass() {
    time_.emplace(s);
    s.on_idle = [this] {
        time_->note_connections();
        watching_->check();
    };
    s.on_quiet = [] {};
}

void lock_scenario::finish() {
    s.run();
    open_directories();
    const int longest_pause = was_closed_ ? 100 : 20;  // seconds: of what is removed in the background
    for (int seconds = 0; time_ && seconds < longest_pause; ++seconds) {
        time_->pass(std::chrono::seconds(1));
        s.run();
    }
    // In a simulation no heartbeat is due: the session ends instead.
    while (const auto client = watching_->waits_for_a_heartbeat()) {
        s.ensemble.expire(*client);
        s.run();
    }
    watching_->check_end();
    s.close();
}

}  // namespace zkasio::test
