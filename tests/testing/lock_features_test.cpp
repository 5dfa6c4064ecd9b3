// Every kind of lock with every feature: each field of the table is tried here, or says which test does, or why there
// is nothing to try. docs/locks.md has the table for users.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/watch.hpp>

#include <asio/error.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace lock_features_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace std::chrono_literals;
using testing::fake_ensemble;

namespace {

// ---------------------------------------------------------------------------------------------------------- the kinds

/// What an acquire or a campaign gives; null: refused. Given back when destroyed.
using holding = std::shared_ptr<const lock_guard>;

/// Something to hold, of any kind.
class contender {
public:
    virtual ~contender() = default;
    virtual asio::awaitable<holding> take(acquire_options how = acquire_options()) const = 0;
    virtual asio::awaitable<holding> attempt() const = 0;
    virtual asio::awaitable<holding> attempt_for(any_duration limit) const = 0;
};
using contender_ptr = std::shared_ptr<const contender>;

template <class T>
holding kept(std::optional<T> got) {
    if (!got) return nullptr;
    const auto all = std::make_shared<T>(std::move(*got));
    if constexpr (std::is_same_v<T, leadership>)
        return {all, &all->guard()};
    else
        return all;
}

class locking final : public contender {
public:
    explicit locking(std::shared_ptr<const lockable> lock) : lock_(std::move(lock)) {}
    asio::awaitable<holding> take(acquire_options how) const override {
        std::optional<lock_guard> guard(co_await lock_->acquire(std::move(how)));
        co_return kept(std::move(guard));
    }
    asio::awaitable<holding> attempt() const override { co_return kept(co_await lock_->try_acquire()); }
    asio::awaitable<holding> attempt_for(any_duration limit) const override {
        co_return kept(co_await lock_->try_acquire_for(limit));
    }

private:
    std::shared_ptr<const lockable> lock_;
};

class standing final : public contender {
public:
    explicit standing(leader_election election) : election_(std::move(election)) {}
    asio::awaitable<holding> take(acquire_options how) const override {
        std::optional<leadership> elected(co_await election_.campaign(std::move(how)));
        co_return kept(std::move(elected));
    }
    asio::awaitable<holding> attempt() const override { co_return kept(co_await election_.try_campaign()); }
    asio::awaitable<holding> attempt_for(any_duration limit) const override {
        co_return kept(co_await election_.try_campaign_for(limit));
    }

private:
    leader_election election_;
};

template <class Lock>
contender_ptr of(Lock lock) {
    return std::make_shared<const locking>(std::make_shared<const Lock>(std::move(lock)));
}

using factory = std::function<contender_ptr(client)>;
struct kind_of_lock {
    std::string name;
    factory holder;
    factory rival;  ///< what the holder excludes
};

multi_mutex two_locks(client zk) {
    multi_mutex both(zk);
    both.add(mutex(zk, "/locks/a")).add(mutex(zk, "/locks/b"));
    return both;
}

std::vector<kind_of_lock> kinds() {
    std::vector<kind_of_lock> all;
    const auto add = [&](std::string name, factory make) { all.push_back({std::move(name), make, make}); };
    add("mutex", [](client zk) { return of(mutex(zk, "/locks/a")); });
    add("writer", [](client zk) { return of(shared_mutex(zk, "/locks/a")); });
    all.push_back({"reader", [](client zk) { return of(shared_mutex(zk, "/locks/a").readers()); },
                   [](client zk) { return of(shared_mutex(zk, "/locks/a")); }});
    add("semaphore", [](client zk) { return of(semaphore(zk, "/locks/a", permits::fixed(1)).request()); });
    add("multi_mutex", [](client zk) { return of(two_locks(zk)); });
    add("cohort_mutex", [](client zk) { return of(cohort_mutex(zk, "/locks/a")); });
    add("unfair_mutex", [](client zk) { return of(unfair_mutex(zk, "/locks/a")); });
    add("slots", [](client zk) { return of(slots(zk, "/locks/a", 1)); });
    add("leader_election",
        [](client zk) { return std::make_shared<const standing>(leader_election(zk, "/locks/a")); });
    return all;
}

// ------------------------------------------------------------------------------------------------------- the features

client_options ten_seconds() { return sessions_of_ten_seconds().connection_timeout(1h); }

struct scene {
    explicit scene(const kind_of_lock& k, client_options options = ten_seconds())
        : first(e.client(options)),
          second(e.client(options)),
          ours(k.holder(first)),
          ours_next(k.rival(first)),
          theirs(k.rival(second)) {
        e.run(first.connected());
        e.run(second.connected());
    }
    ~scene() {
        held.reset();
        e.run(first.close());
        e.run(second.close());
    }
    scene(const scene&) = delete;
    scene& operator=(const scene&) = delete;

    void take() { held = e.run(ours->take()); }
    bool nodes_are_there() const {
        const std::vector<std::string>& nodes = held->paths();
        return std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) { return e.exists(node); });
    }

    fake_ensemble e;
    client first, second;
    contender_ptr ours, ours_next, theirs;
    holding held;
};

asio::awaitable<void> take_into(contender_ptr from, std::shared_ptr<holding> to) { *to = co_await from->take(); }

std::error_code code_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const std::system_error& failed) {
        return failed.code();
    }
    return {};
}

/// A body that ends when it is told to, whatever is cancelled.
asio::awaitable<void> stubborn(one_shot_event may_end) {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await may_end.wait();
}

void attempts_do_not_wait(const kind_of_lock& k) {
    scene s(k);
    s.take();
    const auto begin = s.e.now();
    CHECK_FALSE(s.e.run(s.theirs->attempt()));
    CHECK_FALSE(s.e.run(s.ours_next->attempt()));
    CHECK(s.e.now() - begin < 100ms);
    CHECK(s.held->held());
    s.held.reset();
    s.e.run_for(3s);  // an idle place of a cohort_mutex lingers
    CHECK(s.e.run(s.theirs->attempt()));
}

void try_right_after_a_release(const kind_of_lock& k) {
    scene s(k);
    const std::vector<contender_ptr> tries{s.ours, s.ours_next};
    auto body = [&]() -> asio::awaitable<void> {
        for (const contender_ptr& next : tries) {
            { const holding released = co_await s.ours->take(); }
            const holding got = co_await next->attempt();
            CHECK(got);
        }
    };
    s.e.run(body);
}

void limits_end_the_wait(const kind_of_lock& k) {
    scene s(k);
    s.take();
    const auto begin = s.e.now();
    CHECK_FALSE(s.e.run(s.theirs->attempt_for(2s)));
    CHECK(s.e.now() - begin >= 2s);
    CHECK(s.e.now() - begin < 2100ms);
    const auto got = std::make_shared<holding>();
    auto wait = [](contender_ptr from, std::shared_ptr<holding> to) -> asio::awaitable<void> {
        *to = co_await from->attempt_for(2s);
    };
    const running waits(s.e.get_executor(), wait(s.theirs, got));
    s.e.run_for(1s);
    s.held.reset();
    s.e.run_for(500ms);
    CHECK(*got);
}

void owner_has_it_already(const kind_of_lock& k) {
    scene s(k);
    const lock_owner me;
    s.held = s.e.run(s.ours->take(acquire_options().owner(me)));
    holding again = s.e.run(s.ours->take(acquire_options().owner(me)), 1s);
    CHECK(again->paths() == s.held->paths());
    again.reset();
    s.e.run_for(1s);
    CHECK(s.held->held());
    CHECK_FALSE(s.e.run(s.theirs->attempt()));
}

void owner_is_refused(const kind_of_lock& k) {
    scene s(k);
    const auto with_owner = [&] { s.e.run(s.ours->take(acquire_options().owner(lock_owner()))); };
    CHECK(code_of(with_owner) == errc::invalid_argument);
}

void revoke_is_heard(const kind_of_lock& k) {
    scene s(k);
    s.take();
    const running asked(s.e.get_executor(), s.held->revoke_requested());
    s.e.run_for(1s);
    CHECK_FALSE(asked.ended());
    s.e.run(revoke(s.second, s.held->path()));
    s.e.run_for(1s);
    CHECK(asked.ended());
    CHECK(s.held->held());
}

void margin_ends_bodies_as_owners(const kind_of_lock& k) {
    scene s(k);
    s.take();
    bool owned = false, ended = false;
    auto body = [&]() -> asio::awaitable<void> {
        try {
            co_await sleep_for(24h);
        } catch (const std::system_error&) {
            owned = s.held->held();
        }
        ended = true;
        throw std::system_error(asio::error::operation_aborted);
    };
    const running under(s.e.get_executor(), s.held->run(body, 2s));
    s.e.run_for(3s);
    CHECK_FALSE(ended);
    s.e.hold_down(s.first);
    s.e.run_for(12s);
    CHECK(ended);
    CHECK(owned);
    CHECK(s.held->reason() != loss_reason::none);
    CHECK(s.e.run(s.theirs->take(), 20s)->held());
    s.e.let_in(s.first);
}

void body_under_a_lost_guard(const kind_of_lock& k) {
    scene s(k);
    s.take();
    const one_shot_event may_end = toolbox(s.first).make_one_shot_event();
    auto body = [&]() { return stubborn(may_end); };
    const running under(s.e.get_executor(), s.held->run(body));
    s.e.run_for(6s);
    s.e.remove(s.held->paths().back());
    holding other = s.e.run(s.theirs->take(), 20s);
    CHECK(other->held());
    CHECK_FALSE(s.held->held());
    const auto next = std::make_shared<holding>();
    const running waits(s.e.get_executor(), take_into(s.ours_next, next));
    s.e.run_for(1s);
    other.reset();
    s.e.run_for(3s);
    CHECK_FALSE(*next);
    may_end.fire();
    s.e.run_for(2s);
    CHECK(*next);
}

// What a process that was killed has left in a session that is resumed: resume_test, any_kind().
void resumed_and_handed_over(const kind_of_lock& k) {
    scene s(k);
    s.take();
    s.held.reset();
    const std::optional<session_credentials> left = s.e.run(s.first.hand_over());
    REQUIRE(left);
    const client heir = s.e.client(ten_seconds().resume(*left));
    s.e.run(heir.connected());
    const holding theirs = s.e.run(s.theirs->take(), 1s);  // nothing is left in its way
    CHECK(theirs->held());
    const auto got = std::make_shared<holding>();
    const running waits(s.e.get_executor(), take_into(k.rival(heir), got));
    s.e.run_for(1s);
    CHECK_FALSE(*got);
    s.e.run(heir.close());
    s.e.run_for(1s);
    CHECK(waits.ended());
}

void operator_deletes_the_node(const kind_of_lock& k) {
    scene s(k);
    s.take();
    s.e.run_for(6s);
    const fencing_token before = s.held->token();
    s.e.remove(s.held->paths().back());
    CHECK(s.e.run(s.held->lost(), 1s) == loss_reason::node_deleted);
    holding other = s.e.run(s.theirs->take(), 20s);
    CHECK(other->token() > before);
    other.reset();
    s.e.run_for(3s);
    const holding again = s.e.run(s.ours_next->take(), 20s);  // while the lost guard is kept
    CHECK(again->held());
}

void session_expires(const kind_of_lock& k) {
    scene s(k);
    s.take();
    const auto got = std::make_shared<holding>();
    const running waits(s.e.get_executor(), take_into(s.theirs, got));
    s.e.run_for(1s);
    s.e.expire(s.first);
    CHECK(s.e.run(s.held->lost(), 20s) == loss_reason::session_expired);
    s.e.run_for(1s);
    REQUIRE(*got);
    CHECK((*got)->held());
    *got = nullptr;
    CHECK(s.e.run(s.ours_next->take(), 20s)->held());  // in the next session
}

void set_acl_of_directories(scene& s, const std::vector<std::string>& nodes, const acl& entries) {
    for (const std::string& node : nodes) s.e.run(s.second.set_acl(std::string(parent_path(node)), entries));
}

void removal_is_refused(const kind_of_lock& k) {
    for (const bool has_next : {false, true}) {
        scene s(k);
        s.take();
        const std::vector<std::string> nodes = s.held->paths();
        const auto got = std::make_shared<holding>(), next = std::make_shared<holding>();
        std::optional<running> next_waits;
        if (has_next) next_waits.emplace(s.e.get_executor(), take_into(s.ours_next, next));
        s.e.run_for(1s);
        const running waits(s.e.get_executor(), take_into(s.theirs, got));
        s.e.run_for(1s);
        const permission rest = permission::read | permission::write | permission::create | permission::admin;
        set_acl_of_directories(s, nodes, acl_of(acl_entry(rest, anyone())));
        s.held.reset();
        s.e.run_for(200ms);
        CHECK_FALSE(*got);
        set_acl_of_directories(s, nodes, open_acl());
        s.e.run_for(5s);
        // The next one of the same client may have been handed the lock without the servers.
        const bool was_next = bool(std::exchange(*next, nullptr));
        s.e.run_for(5s);
        REQUIRE(*got);
        CHECK((*got)->held());
        *got = nullptr;
        s.e.run_for(5s);
        CHECK((was_next || *next) == has_next);
        *next = nullptr;
        s.e.run_for(1s);
        for (const std::string& node : nodes) CHECK_FALSE(s.e.exists(node));
    }
}

void default_acl_protects(const kind_of_lock& k) {
    scene s(k, ten_seconds().auth("digest", "ann:secret").default_acl(creator_all_acl()));
    s.take();
    const client eve = s.e.client(ten_seconds());
    for (const std::string& node : s.held->paths()) {
        CHECK(code_of([&] { s.e.run(eve.set(node, "")); }) == zk_errc::no_auth);
        CHECK(code_of([&] { s.e.run(eve.remove(node)); }) == zk_errc::no_auth);
    }
    s.e.run_for(30s);
    CHECK(s.held->held());
    s.e.run(eve.close());
}

void read_only_client_is_refused(const kind_of_lock& k) {
    fake_ensemble e;
    const client reader = e.client(ten_seconds().read_only());
    e.lose_quorum(reader);
    e.run(reader.connected());
    const contender_ptr ours = k.holder(reader);
    const auto begin = e.now();
    CHECK(code_of([&] { e.run(ours->take()); }) == zk_errc::not_read_only);
    CHECK(code_of([&] { e.run(ours->attempt()); }) == zk_errc::not_read_only);
    CHECK(code_of([&] { e.run(ours->attempt_for(2s)); }) == zk_errc::not_read_only);
    CHECK(e.now() - begin < 1s);
    e.run(reader.close());
}

void cohort_beside_it(const kind_of_lock& k) {
    scene s(k);
    const contender_ptr cohort = of(cohort_mutex(s.first, "/locks/a", cohort_mutex_options().turns(10).linger(1h)));
    for (int i = 0; i < 5; ++i) {
        s.take();
        const auto got = std::make_shared<holding>();
        const running waits(s.e.get_executor(), take_into(cohort, got));
        s.e.run_for(100ms);
        CHECK_FALSE(*got);
        s.held.reset();
        s.e.run_for(2s);
        REQUIRE(*got);
        CHECK_FALSE(s.e.run(s.ours->attempt()));
        *got = nullptr;  // an idle place, which goes when the next one comes
    }
}

// ---------------------------------------------------------------------------------------------------------- the table

using test_of_field = void (*)(const kind_of_lock&);

// No field: "linger". Only a cohort_mutex keeps a lock that no coroutine of its process wants, in an idle place of the
// queue: cohort_mutex_test ("a place lingers for as long as it is told") and cohort_mutex_others_test try that. Numbers
// of slots rest instead, slots_test. All other kinds release the lock with its guard.

const char* const no_owners = "refused: each grant is one guard's";
const char* const other_names = "its nodes have other names or another place: the two are different locks";

/// Fields that are tried in another way, and those with nothing to try, with the reason.
struct exception_of {
    std::string reason;
    test_of_field instead = nullptr;
};
const std::map<std::pair<std::string, test_of_field>, exception_of> exceptions{
    {{"semaphore", owner_has_it_already}, {no_owners, owner_is_refused}},
    {{"multi_mutex", owner_has_it_already},
     {"refused: each part names its own in add(), see lock_owner_test", owner_is_refused}},
    {{"unfair_mutex", owner_has_it_already}, {no_owners, owner_is_refused}},
    {{"slots", owner_has_it_already}, {no_owners, owner_is_refused}},
    {{"leader_election", owner_has_it_already}, {"refused: a term has one end", owner_is_refused}},
    {{"writer", cohort_beside_it}, {other_names}},
    {{"reader", cohort_beside_it}, {other_names}},
    {{"semaphore", cohort_beside_it}, {other_names}},
    {{"unfair_mutex", cohort_beside_it}, {other_names}},
    {{"slots", cohort_beside_it}, {other_names}},
    {{"leader_election", cohort_beside_it}, {other_names}},
};

void try_feature(test_of_field feature) {
    for (const kind_of_lock& kind : kinds()) {
        INFO(kind.name);
        const auto found = exceptions.find({kind.name, feature});
        const test_of_field test = found == exceptions.end() ? feature : found->second.instead;
        if (test) test(kind);
    }
}

}  // namespace

TEST_CASE("locks: an attempt does not wait, whoever holds the lock", "[lock][table]") {
    try_feature(attempts_do_not_wait);
}
// Numbers of slots that rest are another matter, see slots_test.
TEST_CASE("locks: a try of the same client right after a release gets the lock", "[lock][table]") {
    try_feature(try_right_after_a_release);
}
TEST_CASE("locks: a time limit ends the wait, or the lock is acquired in time", "[lock][table]") {
    try_feature(limits_end_the_wait);
}
TEST_CASE("locks: an owner has at once what it has already, where there are owners", "[lock][table]") {
    try_feature(owner_has_it_already);
}
TEST_CASE("locks: a holder hears that it is asked back", "[lock][table]") { try_feature(revoke_is_heard); }
TEST_CASE("locks: a stop margin ends a body while it owns the lock", "[lock][table]") {
    try_feature(margin_ends_bodies_as_owners);
}
TEST_CASE("locks: a body under a lost guard keeps its own client out, and no other", "[lock][table]") {
    try_feature(body_under_a_lost_guard);
}
TEST_CASE("locks: a session that is handed over and resumed holds nothing", "[lock][table]") {
    try_feature(resumed_and_handed_over);
}
TEST_CASE("locks: an operator deletes a holder's node", "[lock][table]") { try_feature(operator_deletes_the_node); }
TEST_CASE("locks: a holder's session expires", "[lock][table]") { try_feature(session_expires); }
TEST_CASE("locks: nodes have the client's default ACL", "[lock][table]") { try_feature(default_acl_protects); }
TEST_CASE("locks: an ACL refuses to remove a holder's node, and allows it later", "[lock][table][refused]") {
    try_feature(removal_is_refused);
}
TEST_CASE("locks: a client that only reads is refused, and does not wait", "[lock][table]") {
    try_feature(read_only_client_is_refused);
}
TEST_CASE("locks: beside a cohort of the same client", "[lock][table]") { try_feature(cohort_beside_it); }

TEST_CASE("locks: each exception is of a kind that there is", "[lock][table]") {
    std::set<std::string> names;
    for (const kind_of_lock& kind : kinds()) names.insert(kind.name);
    for (const auto& [field, exception] : exceptions) CHECK(names.count(field.first) == 1);
}

}  // namespace lock_features_tests
