#include <zkasio/barriers/detail/barrier_member.hpp>
#include <zkasio/barriers/detail/barrier_requests.hpp>
#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/rethrow_to_caller.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/retry_until_certain.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/recipe/wait_as.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace zkasio::barrier_detail {

void barrier_member::begin_to_withdraw(std::shared_ptr<barrier_member> self) noexcept {
    self->hold_.end();
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

// Removes this member's node, and `ready` in the same transaction if `with_ready`. If the answer is lost, the
// transaction is sent again: this member's node is gone if the first one was applied.
asio::awaitable<void> barrier_member::remove_own(bool with_ready) {
    back_off pauses = toolbox(on_).make_back_off();
    while (with_ready) {
        transaction both;
        both.remove(own_).remove(ready_);
        try {
            co_await on_.multi(std::move(both));
            co_return;
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node && e.code() != condition::retryable) throw;
            if (e.code() == zk_errc::no_node && e.path() == own_) co_return;
            with_ready = e.code() != zk_errc::no_node;
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
    // A member whose node an operator has removed does not wait for members that may have come since.
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
    r.code = failure_of(self->failed_).code;
    r.ended = boot_clock::now();
    send_report(self->on_, std::move(r), self->spec_.path);
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
        rethrow_to_caller(self->failed_, "leave", self->spec_.path);
    } catch (const error& e) {
        if (e.code() == condition::session_ended) throw error(e.code(), "leave", self->spec_.path, e.hint());
        throw;
    }
}

}  // namespace zkasio::barrier_detail
