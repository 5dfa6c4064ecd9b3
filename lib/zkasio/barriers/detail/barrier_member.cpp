#include <zkasio/barriers/detail/barrier_member.hpp>

#include <zkasio/barriers/detail/barrier_requests.hpp>
#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace zkasio::barrier_detail {
namespace {

asio::awaitable<void> until_reconnected(session_events events) {
    for (bool cut = false;;) {
        const session_event next = co_await events.next();
        if (next.state == session_state::connected && cut) co_return;
        cut = next.state != session_state::connected;
    }
}

// The event that wakes a waiting member.
class alarm {
public:
    explicit alarm(const session& on) : on_(on), rings_(toolbox(on).make_one_shot_event()) {}

    void set_on(watch changes) {
        const auto kept = std::make_shared<const watch>(std::move(changes));
        watches_.push_back(kept);
        asio::dispatch(on_.get_executor(), [kept, created = created_, rings = rings_] {
            kept->then([created, rings](std::error_code failed, node_change what) {
                if (!failed && what == node_change::created) created->store(true);
                rings.fire();
            });
        });
    }
    /// *Completes when* a watch has fired, when there is another connection, or when the session is over.
    asio::awaitable<void> rung(session_events events) {
        std::function<asio::awaitable<void>()> wait = [events] { return until_reconnected(events); };
        co_await rings_.run_until(std::move(wait));
    }
    /// Whether a watch has told that a node was created. Written on the strand.
    std::shared_ptr<const std::atomic<bool>> created() const noexcept { return created_; }

private:
    const session& on_;
    const one_shot_event rings_;
    std::vector<std::shared_ptr<const watch>> watches_;
    const std::shared_ptr<std::atomic<bool>> created_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

barrier_member::barrier_member(session on, barrier_spec spec)
    : session_(std::move(on)),
      on_(session_.patient()),
      spec_(std::move(spec)),
      ready_(join_path(spec_.path, std::string(ready_name))),
      left_(toolbox(session_).make_one_shot_event()) {}

// A member takes a new name for each node that it creates: other members wait for a name, and would take a new node of
// the old name for the one that an operator has removed.
void barrier_member::take_name() {
    name_ = new_protection_id();
    own_ = join_path(spec_.path, name_);
}

// The directory, as a container.
asio::awaitable<void> barrier_member::create_directory() {
    create_options how;
    how.mode(create_mode::container).acl(spec_.entries).parents(missing_parents::create_container);
    co_await ensure_created(on_, spec_.path, bytes(), how);
}

// Creates this member's node. `ready` is watched before: this member may complete a round of kazoo's members, who may
// begin, end and remove `ready` before this member has looked again. True: the watch tells that `ready` was created
// later than the node. An event that had arrived when the create was answered does not count.
asio::awaitable<bool> barrier_member::create_own() {
    create_options how;
    how.mode(create_mode::ephemeral).acl(spec_.entries);
    alarm before(on_);
    watched<std::optional<node_stat>> ready = co_await on_.exists_and_watch(ready_);
    before.set_on(std::move(ready.changes));
    for (;;) {
        const auto told_too_early = std::make_shared<bool>(false);  // written before `answered` is fired
        const auto creating = std::make_shared<std::optional<pending_create>>();
        const one_shot_event answered = toolbox(on_).make_one_shot_event();
        asio::dispatch(on_.get_executor(), [=, told = before.created(), on = on_, path = own_, data = spec_.data] {
            creating->emplace(toolbox(on).start_create(path, data, how));
            (*creating)->then([=] {
                *told_too_early = told->load();
                answered.fire();
            });
        });
        co_await errors_as("enter", spec_.path, answered.wait());
        bool lost = false;
        try {
            (*creating)->get();
            co_return !*told_too_early && before.created()->load();
        } catch (const error& e) {
            lost = e.code() == condition::retryable;
            if (!lost && e.code() != zk_errc::no_node) throw;
        }
        if (lost) break;
        co_await create_directory();
    }
    how.parents(missing_parents::create_container);
    co_await ensure_created(on_, own_, bytes(spec_.data), how);
    co_return false;
}

// B3: only as long as the own node is there. If the answer is lost, the transaction is sent again: a `ready` that
// exists is younger than the own node, whoever has created it (B1). False: an operator has removed the own node.
asio::awaitable<bool> barrier_member::create_ready() {
    create_options how;
    how.acl(spec_.entries);
    try {
        co_await ensure_created(on_, ready_, bytes(), std::move(how), own_);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
        co_return false;
    }
    co_return true;
}

// Joins the round of the member `other`, see B2. False: that member or `ready` is gone, or the outcome is unknown. In
// the last case this member's own node tells the outcome, see enter_view::joined.
asio::awaitable<bool> barrier_member::join(std::string other) {
    transaction steps;
    steps.check(join_path(spec_.path, std::move(other))).check(ready_).set(own_, bytes(spec_.data));
    try {
        co_await on_.multi(std::move(steps));
    } catch (const error& e) {
        if ((e.code() != zk_errc::no_node && e.code() != condition::retryable) || e.hung_up()) throw;
        co_return false;
    }
    co_return true;
}

// One member of a round is enough to join it: so the others are read one, two, four ... at a time, until one is found.
// To refuse this member, or to remove `ready`, takes all others.
asio::awaitable<enter_step> barrier_member::read_and_decide(enter_view& seen) {
    const std::vector<std::string>& all = seen.children.members;
    const bool may_refuse = spec_.exactly && all.size() > spec_.members;
    for (std::size_t count = may_refuse ? all.size() : 2;; count *= 2) {
        const auto some = static_cast<std::ptrdiff_t>(std::min(count, all.size()));
        std::vector<std::string> members(all.begin(), all.begin() + some);
        seen.others = co_await read_others(on_, spec_.path, name_, std::move(members));
        const enter_step step = next_enter_step(seen, spec_.members, spec_.exactly);
        if (step == enter_step::join || count >= all.size()) co_return step;
    }
}

// Members of this session that have not entered in this process would never leave.
void barrier_member::remove_orphans() const {
    toolbox(on_).remove_orphans("double_barrier " + spec_.path, spec_.path,
                                [](const std::string& name) { return name != ready_name; });
}

asio::awaitable<void> barrier_member::until_ready(session_events events) {
    back_off pauses = toolbox(on_).make_back_off();
    enter_view seen;
    bool tried_to_join = false;
    for (enter_step step = enter_step::create_own;;) {
        if (step == enter_step::create_own) {
            tried_to_join = false;
            take_name();
            seen.own = name_;
            seen.ready_was_created = co_await create_own();
        }
        // In this order, see enter_view. The own node is watched, too: an operator may remove it.
        alarm wakes(on_);
        watched<std::optional<node_stat>> own = co_await on_.exists_and_watch(own_);
        watched<std::optional<node_stat>> ready = co_await on_.exists_and_watch(ready_);
        seen.born = own.value ? std::optional(own.value->czxid) : std::nullopt;
        seen.joined = tried_to_join && own.value && own.value->version > 0;
        seen.ready_since = ready.value ? std::optional(ready.value->czxid) : std::nullopt;
        seen.children = co_await children_of(on_, spec_.path);
        seen.others.reset();
        step = next_enter_step(seen, spec_.members, spec_.exactly);
        if (step == enter_step::read_others) {
            step = co_await read_and_decide(seen);
        }
        if (step == enter_step::pass) co_return;
        if (step == enter_step::refuse)
            throw error(errc::too_many_members, "enter", spec_.path,
                        std::to_string(spec_.members) + " are there without this one");
        if (step == enter_step::create_ready) {
            const bool created = co_await create_ready();
            if (created) co_return;
        }
        if (step == enter_step::join) {
            tried_to_join = true;
            const bool joined = co_await join(member_of_round(seen));
            if (joined) co_return;
        }
        if (step == enter_step::wait) {
            remove_orphans();
            wakes.set_on(std::move(own.changes));
            wakes.set_on(std::move(ready.changes));
            co_await wakes.rung(events);
            seen.ready_was_created = seen.ready_was_created || wakes.created()->load();
            continue;
        }
        if (step == enter_step::remove_left_over)
            co_await remove_left_over(on_, spec_.path, *seen.ready_since, *seen.others);
        co_await pauses.pause();
    }
}

asio::awaitable<bool> barrier_member::passed(session_events events) {
    co_await until_ready(std::move(events));
    const std::optional<node_stat> ready = co_await on_.exists(ready_);
    if (ready) round_ = ready->czxid;
    hold_ = session_.hold(own_);
    asio::dispatch(session_.get_executor(), [self = shared_from_this()] { self->hold_.watch_nodes(); });
    try {
        co_await hold_.confirmed();
    } catch (const error& e) {
        if (e.code() != errc::lock_lost || session_.over()) throw;
        co_return false;
    }
    co_return true;
}

}  // namespace zkasio::barrier_detail
