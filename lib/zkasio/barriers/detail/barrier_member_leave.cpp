#include <zkasio/barriers/detail/barrier_member.hpp>
#include <zkasio/barriers/detail/barrier_requests.hpp>
#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::barrier_detail {

void barrier_member::begin_to_withdraw(std::shared_ptr<barrier_member> self) noexcept {
    self->hold_.end();
    toolbox(self->on_).run_in_background(withdraw(self));
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

// Removes this member's node, and `ready` in the same transaction if `with_ready`. If the answer is lost, the
// transaction is sent again: this member's node is gone if the first one was applied. If an ACL refuses the
// transaction, this member's node goes later, without `ready`: see toolbox::ensure_removed().
asio::awaitable<void> barrier_member::remove_own(bool with_ready) {
    back_off pauses = toolbox(on_).make_back_off();
    while (with_ready) {
        transaction both;
        both.remove(own_).remove(ready_);
        try {
            co_await on_.multi(std::move(both));
            co_return;
        } catch (const error& e) {
            const bool refused = e.code() == zk_errc::no_auth;
            if (e.code() != zk_errc::no_node && e.code() != condition::retryable && !refused) throw;
            if (e.code() == zk_errc::no_node && e.path() == own_) co_return;
            with_ready = e.code() == condition::retryable;
        }
        if (with_ready) co_await pauses.pause();
    }
    const pending_removal removal = toolbox(on_).ensure_removed(own_);
    co_await removal.result();
}

// After the removal of the own node: if there is no other member, `ready` is left over. Each member whose node goes
// without `ready` looks for it afterwards: so the last of them finds it.
asio::awaitable<void> barrier_member::leave_no_ready() {
    back_off pauses = toolbox(on_).make_back_off();
    for (;;) {
        const std::optional<node_stat> ready = co_await newest_stat(on_, ready_);
        const barrier_children now = co_await children_of(on_, spec_.path);
        if (!ready || !now.members.empty()) co_return;
        std::vector<other_member> none;
        const bool certain = co_await remove_left_over(on_, spec_.path, ready->czxid, std::move(none));
        if (certain) co_return;
        co_await pauses.pause();
    }
}

// The members that were there when this one began to leave, and what has been found out about them since. Only the
// members that this one is about to wait for are read: if each read all others, n members would read n * n nodes.
struct barrier_member::round_members {
    round_members() {}  // user-provided: see coroutine_safety.hpp
    barrier_children now;
    std::vector<std::string> names;           // without those that are known to have left, or to be of no round
    std::optional<std::int64_t> ready_since;  // see members_inside()
    std::map<std::string, std::int64_t> born;  // czxids of the nodes that were watched
    bool all_read = false;
};

asio::awaitable<barrier_member::round_members> barrier_member::who_is_inside() {
    const std::optional<node_stat> ready = co_await newest_stat(on_, ready_);
    round_members round;
    round.now = co_await children_of(on_, spec_.path);
    // A member whose node an operator has removed does not wait for members that may have come since.
    if (round.now.has(name_) || ready || round_) round.names = round.now.members;
    round.ready_since = ready ? std::optional(ready->czxid) : round_;
    co_return round;
}

// A watch of the member's node. Nothing: the member has left, or is not of this round, and `round` says so.
asio::awaitable<std::optional<watch>> barrier_member::inside_and_watch(std::string member, round_members& round) {
    watched<std::optional<node_stat>> node = co_await on_.exists_and_watch(join_path(spec_.path, member));
    std::vector<std::string> inside;
    if (node.value) {
        std::vector<other_member> found(1);
        found[0].name = member;
        found[0].born = node.value->czxid;
        found[0].joined = node.value->version > 0;
        inside = members_inside(found, round.ready_since);
        // A member of kazoo keeps its name: another node of that name is of a later round.
        const auto [known, first] = round.born.emplace(member, found[0].born);
        if (!inside.empty() && (first || known->second == found[0].born)) co_return std::move(node.changes);
    }
    std::erase(round.names, member);
    // Other members of a later round may be here, too: to read them one after another would take long.
    if (node.value && inside.empty() && !std::exchange(round.all_read, true)) {
        const std::vector<other_member> others = co_await read_others(on_, spec_.path, name_, round.names);
        round.names = members_inside(others, round.ready_since);
    }
    co_return std::nullopt;
}

asio::awaitable<void> barrier_member::leave() {
    using removal = leave_step::removal;
    round_members round = co_await who_is_inside();
    for (;;) {
        const leave_step step = next_leave_step(round.now, name_, round.names);
        std::optional<watch> awaited;
        if (!step.then_wait_for.empty()) {
            awaited = co_await inside_and_watch(step.then_wait_for, round);
            if (!awaited) {  // a step that follows from an old listing would leave `ready` behind
                round.now = co_await children_of(on_, spec_.path);
                continue;
            }
        }
        if (step.first == removal::own || step.first == removal::own_and_ready)
            co_await remove_own(step.first == removal::own_and_ready);
        if (step.then_wait_for.empty()) {
            if (step.first != removal::own_and_ready) co_await leave_no_ready();
            co_return;
        }
        remove_orphans();
        co_await awaited->changed();
        round.now = co_await children_of(on_, spec_.path);
    }
}

asio::awaitable<void> barrier_member::leave_in_background(std::shared_ptr<barrier_member> self) {
    barrier_report r;
    r.step = barrier_step::leave;
    r.asked = boot_clock::now();
    const loss_reason why = self->hold_.reason();
    if (why != loss_reason::released) r.lost = why;
    std::optional<error> refused;
    try {
        co_await self->leave();
    } catch (const error& e) {
        self->failed_ = std::current_exception();
        refused.emplace(e);
    } catch (...) {
        self->failed_ = std::current_exception();
    }
    r.code = failure_of(self->failed_);
    r.ended = boot_clock::now();
    send_report(self->on_, std::move(r), self->spec_.path);
    self->left_.fire();
    if (refused && refused->code() != condition::session_ended) throw error(*refused);  // so that it is logged
}

void barrier_member::begin_to_leave(std::shared_ptr<barrier_member> self) noexcept {
    if (self->leaving_.exchange(true)) return;
    self->hold_.end();
    toolbox(self->on_).run_in_background(leave_in_background(self));
}

asio::awaitable<void> barrier_member::until_left(std::shared_ptr<barrier_member> self) {
    co_await errors_as("leave", self->spec_.path, self->left_.wait());
    if (!self->failed_) co_return;
    try {
        rethrow_to_caller(self->failed_, "leave", self->spec_.path);
    } catch (const error& e) {
        if (e.code() == condition::session_ended) throw error(e.code(), "leave", self->spec_.path, e.hint());
        throw;
    }
}

}  // namespace zkasio::barrier_detail
