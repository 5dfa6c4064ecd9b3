#include <zkasio/barriers/detail/barrier_member.hpp>

#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/ensure_created.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <asio/dispatch.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace zkasio::barrier_detail {
namespace {

// Without the directory, there are no children.
asio::awaitable<barrier_children> children_of(session on, std::string directory) {
    node_children found;
    try {
        found = co_await on.children(std::move(directory));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return barrier_children(std::move(found.names));
}

// Of these members without `own`, those that are still there. One flight.
asio::awaitable<std::vector<other_member>> read_others(session on, std::string directory, std::string own,
                                                       std::vector<std::string> members) {
    std::erase(members, own);
    std::vector<other_member> there;
    auto read = [&]() -> asio::awaitable<void> {
        there.clear();
        std::vector<pending_data> asked;
        for (const std::string& member : members) asked.push_back(toolbox(on).start_exists(join_path(directory, member)));
        for (std::size_t i = 0; i < members.size(); ++i) {
            try {
                const node_data found = co_await asked[i].result();
                other_member& member = there.emplace_back();
                member.name = members[i];
                member.born = found.stat.czxid;
                member.joined = found.stat.version > 0;
            } catch (const error& e) {
                if (e.code() != zk_errc::no_node) throw;
            }
        }
    };
    co_await retry_until_certain(toolbox(on).make_back_off(), read);
    co_return there;
}

// Removes this very `ready`, unless one of the others has joined its round since they were read. Another client may
// remove it at the same time and then begin a round with a new one: a write before the removal tells which node the
// removal is about. False: the outcome is unknown.
asio::awaitable<bool> remove_left_over(session on, std::string directory, std::int64_t czxid,
                                       std::vector<other_member> others) {
    const std::string ready = join_path(directory, std::string(ready_name));
    try {
        const node_data there = co_await on.get(ready);
        if (there.stat.czxid != czxid) co_return true;
        const node_stat marked = co_await on.set(ready, there.data, there.stat.version);
        if (marked.czxid != czxid) co_return true;
        transaction steps;
        for (const other_member& other : others) steps.check(join_path(directory, other.name), 0);
        steps.remove(ready, marked.version);
        co_await on.multi(std::move(steps));
    } catch (const error& e) {
        if (e.code() == condition::retryable) co_return false;
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version) throw;
    }
    co_return true;
}

asio::awaitable<void> until_reconnected(session_events events) {
    for (bool cut = false;;) {
        const session_event next = co_await events.next();
        if (next.state == session_state::connected && cut) co_return;
        cut = next.state != session_state::connected;
    }
}

// What wakes a member that waits.
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

// ------------------------------------------------------------------------------------------------------------ enter

// Each node has a name of its own, also after an operator has removed the one before: other members know by the name for
// whom they wait.
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

// `ready` is watched before the node is created: members of kazoo, whose last one this is, may begin, end and remove
// `ready` before this member has looked again. True: the watch tells that `ready` was created later than the node. An
// event that had arrived when the create was answered does not.
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
        co_await wait_as(answered, "enter", spec_.path);
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

// False: an operator has removed the directory with all members.
asio::awaitable<bool> barrier_member::create_ready() {
    create_options how;
    how.acl(spec_.entries);
    try {
        co_await ensure_created(on_, ready_, bytes(), how);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
        co_return false;
    }
    co_return true;
}

// False: the other member is gone, or `ready`, or the outcome is unknown. Then the own node tells, see
// enter_view::joined.
asio::awaitable<bool> barrier_member::join(std::string other) {
    transaction steps;
    steps.check(join_path(spec_.path, std::move(other))).check(ready_).set(own_, bytes(spec_.data));
    try {
        co_await on_.multi(std::move(steps));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != condition::retryable) throw;
        co_return false;
    }
    co_return true;
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
            seen.others = co_await read_others(on_, spec_.path, name_, seen.children.members);
            step = next_enter_step(seen, spec_.members, spec_.exactly);
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
            wakes.set_on(std::move(own.changes));
            wakes.set_on(std::move(ready.changes));
            co_await wakes.rung(events);
            seen.ready_was_created = seen.ready_was_created || wakes.created()->load();
            continue;
        }
        if (step == enter_step::remove_left_over) co_await remove_left_over(on_, spec_.path, *seen.ready_since, *seen.others);
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

void barrier_member::begin_to_withdraw(std::shared_ptr<barrier_member> self) noexcept {
    try {
        toolbox(self->on_).run_in_background(withdraw(self));
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<void> barrier_member::withdraw(std::shared_ptr<barrier_member> self) {
    try {
        if (self->own_.empty()) co_return;
        co_await self->remove_own(false);
        co_await self->leave_no_ready();
    } catch (const error& e) {
        if (e.code() != condition::session_ended) throw;
    }
}

// ------------------------------------------------------------------------------------------------------------ leave

// The outcome is certain afterwards: if the answer to the transaction was lost, the own node tells whether it was
// applied.
asio::awaitable<void> barrier_member::remove_own(bool with_ready) {
    back_off pauses = toolbox(on_).make_back_off();
    while (with_ready) {
        std::error_code failed;
        transaction both;
        both.remove(own_).remove(ready_);
        try {
            co_await on_.multi(std::move(both));
            co_return;
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node && e.code() != condition::retryable) throw;
            if (e.code() == zk_errc::no_node && e.path() == own_) co_return;
            with_ready = e.code() != zk_errc::no_node;
            failed = e.code();
        }
        if (with_ready) co_await pauses.pause();
    }
    const pending_removal removal = toolbox(on_).ensure_removed(own_);
    co_await removal.result();
}

// A server that lags behind may not know of all members.
asio::awaitable<void> barrier_member::sync() {
    auto request = [&]() -> asio::awaitable<void> { co_await on_.sync(spec_.path); };
    co_await retry_until_certain(toolbox(on_).make_back_off(), request);
}

// After the removal of the own node: if there is no other member, `ready` is left over. Each member whose node goes
// without `ready` looks for it afterwards: so the last of them finds it.
asio::awaitable<void> barrier_member::leave_no_ready() {
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        co_await sync();
        const std::optional<node_stat> ready = co_await on_.exists(ready_);
        const barrier_children now = co_await children_of(on_, spec_.path);
        if (!ready || !now.members.empty()) co_return;
        std::vector<other_member> none;
        const bool certain = co_await remove_left_over(on_, spec_.path, ready->czxid, std::move(none));
        if (certain) co_return;
        co_await pauses.pause();
    }
}

asio::awaitable<std::vector<std::string>> barrier_member::who_is_inside() {
    co_await sync();
    const std::optional<node_stat> ready = co_await on_.exists(ready_);
    const barrier_children now = co_await children_of(on_, spec_.path);
    std::vector<other_member> others;
    // A member whose node an operator has removed waits for nobody who may have come since.
    if (now.has(name_) || ready || round_) others = co_await read_others(on_, spec_.path, name_, now.members);
    co_return members_inside(others, ready ? std::optional(ready->czxid) : round_);
}

asio::awaitable<void> barrier_member::leave() {
    using removal = leave_step::removal;
    const std::vector<std::string> inside = co_await who_is_inside();
    for (;;) {
        const barrier_children now = co_await children_of(on_, spec_.path);
        const leave_step step = next_leave_step(now, name_, inside);
        if (step.first == removal::own || step.first == removal::own_and_ready)
            co_await remove_own(step.first == removal::own_and_ready);
        if (step.then_wait_for.empty()) {
            if (step.first != removal::own_and_ready) co_await leave_no_ready();
            co_return;
        }
        const auto member = co_await on_.exists_and_watch(join_path(spec_.path, step.then_wait_for));
        if (member.value) co_await member.changes.changed();
    }
}

asio::awaitable<void> barrier_member::leave_in_background(std::shared_ptr<barrier_member> self) {
    std::optional<error> refused;
    try {
        co_await self->leave();
    } catch (const error& e) {
        self->failed_ = std::current_exception();
        refused.emplace(e);
    } catch (...) {
        self->failed_ = std::current_exception();
    }
    self->left_.fire();
    if (refused && refused->code() != condition::session_ended) throw error(*refused);  // so that it is logged
}

void barrier_member::begin_to_leave(std::shared_ptr<barrier_member> self) noexcept {
    if (self->leaving_.exchange(true)) return;
    self->hold_.end();
    try {
        toolbox(self->on_).run_in_background(leave_in_background(self));
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<void> barrier_member::until_left(std::shared_ptr<barrier_member> self) {
    co_await wait_as(self->left_, "leave", self->spec_.path);
    if (!self->failed_) co_return;
    try {
        std::rethrow_exception(self->failed_);
    } catch (const error& e) {
        if (e.code() == condition::session_ended) throw error(e.code(), "leave", self->spec_.path, e.hint());
        throw;
    }
}

}  // namespace zkasio::barrier_detail
