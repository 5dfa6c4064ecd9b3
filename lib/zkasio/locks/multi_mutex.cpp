#include <zkasio/locks/multi_mutex.hpp>

#include <zkasio/coroutines/result.hpp>
#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <functional>

namespace zkasio {

using namespace lock_detail;

namespace {

// A hold that is lost as soon as the hold of one claim is.
session_hold hold_of(const std::vector<std::shared_ptr<lock_claim>>& claims) {
    std::vector<std::reference_wrapper<const session_hold>> holds;
    for (const auto& claim : claims) holds.emplace_back(claim->hold());
    return claims.front()->on().hold_all(holds);
}

// The claims of all locks, in the order in which they were acquired, and one hold over them. If one is lost, all are.
class multi_claim final : public lock_claim {
public:
    static std::shared_ptr<lock_claim> of(std::vector<std::shared_ptr<lock_claim>> parts) {
        const auto all = std::make_shared<multi_claim>(std::move(parts));
        const std::shared_ptr<const session_hold> hold(all, &all->hold_);
        when_lost(all->on(), hold, [weak = std::weak_ptr<multi_claim>(all)](loss_reason why) {
            if (const auto lost = weak.lock())
                for (const auto& p : lost->parts_) p->lose(why);
        });
        return all;
    }
    explicit multi_claim(std::vector<std::shared_ptr<lock_claim>> parts)
        : parts_(std::move(parts)), hold_(hold_of(parts_)) {
        for (const auto& p : parts_) {
            const std::vector<fencing_token> theirs = p->tokens();
            paths_.insert(paths_.end(), p->paths().begin(), p->paths().end());
            tokens_.insert(tokens_.end(), theirs.begin(), theirs.end());
        }
    }
    ~multi_claim() override { give_up(); }

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return parts_.front()->on(); }
    std::int64_t token() const noexcept override { return largest().value(); }
    std::uint64_t turn() const noexcept override { return largest().turn(); }
    std::vector<fencing_token> tokens() const override { return tokens_; }
    void asked_back() noexcept override {
        for (const auto& p : parts_) p->asked_back();
    }
    bool proves() const noexcept override {
        return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->proves(); });
    }
    void body_begins(asio::any_io_executor e) override {
        for (const auto& p : parts_) p->body_begins(e);
    }
    void body_ends(asio::any_io_executor e) noexcept override {
        for (const auto& p : parts_) p->body_ends(e);
    }
    void give_up() noexcept override {
        hold_.end(true);
        for (auto p = parts_.rbegin(); p != parts_.rend(); ++p) (*p)->give_up();
    }
    asio::awaitable<void> gone() override {
        const auto parts = parts_;
        for (const auto& p : parts) co_await p->gone();
    }

private:
    fencing_token largest() const noexcept { return *std::max_element(tokens_.begin(), tokens_.end()); }

    std::vector<std::shared_ptr<lock_claim>> parts_;
    std::vector<std::string> paths_;
    std::vector<fencing_token> tokens_;
    session_hold hold_;
};

std::vector<std::shared_ptr<lock_claim>> claims_of(const std::vector<lock_guard>& guards) {
    std::vector<std::shared_ptr<lock_claim>> claims;
    for (const lock_guard& guard : guards) claims.push_back(guard.claim());
    return claims;
}

// Runs `acquire`, and cancels it when one of `held` is lost. Returns the path of the lost node; "": none was lost.
asio::awaitable<std::string> while_held(std::vector<std::shared_ptr<lock_claim>> held,
                                        std::function<asio::awaitable<void>()> acquire) {
    const session on = held.front()->on();
    const auto all = std::make_shared<const session_hold>(hold_of(held));
    const one_shot_event lost = toolbox(on).make_one_shot_event();
    asio::dispatch(on.get_executor(), [all, lost] {
        if (all->reason() != loss_reason::none) return lost.fire();
        all->on_lost([lost](loss_reason) { lost.fire(); });
    });
    // Not all->run(): `acquire` has to stay on the executor by which would_deadlock is noticed.
    co_await lost.run_until(std::move(acquire));
    co_return all->reason() == loss_reason::none ? std::string() : all->lost_path();
}

// Adapts a lock that is no lockable.
class other_lock final : public lockable {
public:
    using acquire_function = std::function<asio::awaitable<lock_guard>()>;
    using try_function = std::function<asio::awaitable<std::optional<lock_guard>>()>;
    other_lock(client zk, std::string path, acquire_function acquire, try_function try_acquire)
        : lockable(std::move(zk), std::move(path)), acquire_(std::move(acquire)), try_(std::move(try_acquire)) {}

protected:
    lock_attempt attempts(acquire_options) const override {
        return [acquire = acquire_, attempt = try_](if_contended when_contended) {
            return when_contended == if_contended::wait ? waited_for(acquire) : tried(attempt);
        };
    }
    asio::awaitable<lock_guard> wait_for_lock(acquire_options) const override { return acquire_(); }

private:
    // The functions contain the lock that they acquire.
    static asio::awaitable<std::optional<lock_guard>> waited_for(acquire_function acquire) {
        std::optional<lock_guard> guard(co_await acquire());
        co_return guard;
    }
    static asio::awaitable<std::optional<lock_guard>> tried(try_function attempt) { co_return co_await attempt(); }

    acquire_function acquire_;
    try_function try_;
};

// For locks without a node of each acquire's own.
void refuse_data(const acquire_options& how, const std::string& path, std::string_view why) {
    if (how.data()) throw error(errc::invalid_argument, "acquire", path, why);
}

}  // namespace

multi_mutex& multi_mutex::insert(member m) {
    if (!m.lock) throw error(errc::invalid_argument, "multi_mutex", {}, "there is no lock to add");
    if (m.how.survives_expiry())
        throw error(errc::invalid_argument, "multi_mutex", m.lock->path(),
                    "one lock cannot survive the expiry of a session that the others do not: give that to acquire()");
    // Each lock of an inner multi_mutex has its own place in the order of all locks.
    if (const auto* inner = dynamic_cast<const multi_mutex*>(m.lock.get())) return insert_all(*inner, m.how);
    const std::string& where = m.lock->path();
    const auto at = std::lower_bound(members_.begin(), members_.end(), where,
                                     [](const member& a, const std::string& path) { return a.lock->path() < path; });
    if (at != members_.end() && at->lock->path() == where)
        throw error(errc::invalid_argument, "multi_mutex", where,
                    "this lock is there already: it would wait for itself");
    members_.insert(at, std::move(m));
    std::string all;
    for (const member& one : members_) all += (all.empty() ? "" : ",") + one.lock->path();
    set_path(std::move(all));
    return *this;
}

multi_mutex& multi_mutex::insert_all(const multi_mutex& inner, const acquire_options& how) {
    refuse_owner(how, inner.path(), "the owner of a lock is given to add() of the lock itself");
    refuse_data(how, inner.path(), "data are given to add() of the lock itself");
    for (const member& m : inner.members_) insert(m);
    return *this;
}

multi_mutex& multi_mutex::insert_other(std::string path, std::function<asio::awaitable<lock_guard>()> acquire,
                                       std::function<asio::awaitable<std::optional<lock_guard>>()> try_acquire) {
    return insert(
        {std::make_shared<const other_lock>(on(), std::move(path), std::move(acquire), std::move(try_acquire)),
         acquire_options()});
}

void multi_mutex::check_client(const asio::any_io_executor& strand, const operations& zk,
                               const std::string& path) const {
    if (strand != on().get_executor())
        throw error(errc::invalid_argument, "multi_mutex", path, "this lock is another client's");
    // The order of all locks is that of their paths, which are to be of one kind.
    if (toolbox(zk).whole_path("/") != toolbox(on()).whole_path("/"))
        throw error(errc::invalid_argument, "multi_mutex", path, "this lock is another view's, see client::rooted()");
}

namespace {

// Gives all up at once, the last one first, and waits for all. A removal that is refused is logged.
asio::awaitable<void> released(std::vector<lock_guard> guards) {
    std::vector<asio::awaitable<result<void>>> all;
    for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) all.push_back(as_result(guard->release()));
    for (asio::awaitable<result<void>>& one : all) (void)co_await std::move(one);
}

}  // namespace

asio::awaitable<multi_mutex::taken> multi_mutex::take_in_order(multi_mutex self, session on, bool wait,
                                                               bool first_attempt) {
    std::vector<lock_guard> guards;  // released, last first, on every exit
    struct give_back {
        std::vector<lock_guard>& all;
        ~give_back() {
            while (!all.empty()) all.pop_back();
        }
    } const at_the_end{guards};
    taken result;
    for (const member& m : self.members_) {
        std::optional<lock_guard> next;
        std::function<asio::awaitable<void>()> acquire = [&]() -> asio::awaitable<void> {
            if (wait)
                next.emplace(co_await m.lock->acquire(m.how));
            else
                next = co_await m.lock->try_acquire(m.how);
        };
        std::function<asio::awaitable<void>()> patiently = [&] {
            return acquire_in_session(on, m.lock->path(), acquire);
        };
        const bool begins = guards.empty() && first_attempt;
        std::function<asio::awaitable<void>()>& one = wait && !begins ? patiently : acquire;
        if (guards.empty())
            co_await one();
        else
            result.lost = co_await while_held(claims_of(guards), std::move(one));
        if (!next) co_await released(std::move(guards));  // a refused try has given all back when it ends
        if (!next || !result.lost.empty()) co_return result;
        guards.push_back(std::move(*next));
        if (!guards.back().claim())
            throw error(errc::invalid_argument, "multi_mutex", m.lock->path(),
                        "this kind of lock (lockable::attempts) has given an empty guard");
        const session& mine = guards.back().claim()->on();
        self.check_client(mine.get_executor(), mine, m.lock->path());
        if (mine.id() != on.id()) throw error(errc::session_expired, "multi_mutex", m.lock->path());
    }
    for (lock_guard& guard : guards) result.claims.push_back(guard.take_claim());
    co_return result;
}

asio::awaitable<std::optional<lock_guard>> multi_mutex::take(multi_mutex self, acquire_options how, bool wait) {
    refuse_owner(how, self.path(), "the owner of a lock is given to add()");
    refuse_data(how, self.path(), "each lock has a node of its own: data are given to add()");
    if (self.members_.empty()) throw error(errc::invalid_argument, "multi_mutex", {}, "there are no locks in it");
    for (const member& m : self.members_) {
        const client zk = m.lock->view();
        self.check_client(zk.get_executor(), zk, m.lock->path());
    }
    const session on = co_await toolbox(self.on()).current_session("acquire", self.path());
    for (bool first = true;; first = false) {
        taken all = co_await take_in_order(self, on, wait, first);
        if (!all.claims.empty()) {
            const std::shared_ptr<lock_claim> claim = multi_claim::of(std::move(all.claims));
            const bool kept = co_await wait_until_covered(claim);
            if (kept) co_return to_guard(claim, self.on());
            all.lost = claim->hold().lost_path();
        }
        if (all.lost.empty() && !wait) co_return std::nullopt;
        if (on.over()) {
            const std::error_code why = co_await on.ended();
            throw error(why, "multi_mutex", all.lost);
        }
        if (!wait) throw error(errc::lock_lost, "try_acquire", all.lost, "before the others were ours");
    }
}

// Before the first of the locks is acquired.
std::exception_ptr multi_mutex::refusal() const {
    for (const member& m : members_)
        if (std::exception_ptr why = m.lock->refusal()) return why;
    return nullptr;
}

lock_attempt multi_mutex::attempts(acquire_options how) const {
    return [self = *this, how = std::move(how)](if_contended when_contended) {
        return errors_as_acquire(take(self, how, when_contended == if_contended::wait), self.path());
    };
}

}  // namespace zkasio
