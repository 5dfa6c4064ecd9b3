#include <zkasio/recipe/detail/follow_engine.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

#include <cassert>
#include <utility>

namespace zkasio::detail {

namespace {

// The report for a next() that another request replaces.
node_report replaced_report() {
    node_report report;
    report.mark.code = asio::error::operation_aborted;
    report.ended = true;
    return report;
}

}  // namespace

follow_engine::follow_engine(const client& zk, std::string path, node_read what)
    : on_(zk),
      strand_(zk.get_executor()),
      path_(std::move(path)),
      what_(what),
      stopped_(toolbox(zk).make_one_shot_event()),
      rules_(what),
      pauses_(toolbox(zk).make_back_off()),
      refusal_pauses_(toolbox(zk).make_refusal_back_off()) {}

void follow_engine::begin(client zk) {
    asio::dispatch(strand_, [self = shared_from_this(), zk = std::move(zk)] {
        if (self->stopping_) return;
        try {
            self->feed_ = toolbox(zk).feed(self->path_, self);
        } catch (const error& e) {
            self->closed(e.code());
        }
    });
}

void follow_engine::tell_next(std::optional<node_mark> known, node_follower::listener tell, awaited_report_ptr who) {
    asio::dispatch(strand_, [self = shared_from_this(), known = std::move(known), tell = std::move(tell), who] {
        self->tell_ = tell;
        if (const awaited_report_ptr replaced = std::exchange(self->who_, who)) replaced->tell(replaced_report());
        // In a later turn: the listener that is told of the end may be the caller.
        if (self->ended_) return asio::post(self->strand_, [self] { self->tell_end(); });
        self->rules_.want(known);
        self->work();
    });
}

void follow_engine::forget(awaited_report_ptr who) noexcept {
    asio::dispatch(strand_, [self = shared_from_this(), who = std::move(who)] {
        if (self->who_ != who) return;
        self->who_.reset();
        self->tell_ = nullptr;
        self->rules_.want_nothing();
    });
}

// ------------------------------------------------------------------------------------------------ what is told

void follow_engine::connected(bool) {
    up_ = true;
    if (stopping_) return;
    rules_.connected();
    work();
}

void follow_engine::disconnected() {
    up_ = false;
    if (stopping_) return end();
    end_refusal();
    rules_.disconnected();
}

void follow_engine::closed(std::error_code why) {
    up_ = false;
    rules_.disconnected();
    if (!ended_) ended_ = why;
    tell_end();
    end();
}

void follow_engine::answered(node_read what, const std::string&, std::error_code code, node_answer answer) {
    if (stopping_) {
        const bool watched = !code || (what == node_read::stat && code == zk_errc::no_node);
        bool& to_leave = what == node_read::children ? leave_children_ : leave_data_;
        to_leave = to_leave || watched;
        return;
    }
    node_report report;
    report.mark = mark_of(what, code, answer);
    const bool wanted = rules_.answered(what, report.mark);
    if (code != condition::retryable) pauses_.reset();
    if (!rules_.put_off()) refusal_pauses_.reset();
    report.answer = std::move(answer);
    refused_ = rules_.put_off() && code != condition::retryable;
    if (wanted) tell(std::move(report));
    work();
}

void follow_engine::changed(node_change what, const std::string& path, std::int64_t) {
    if (stopping_ || path != path_) return;
    end_refusal();
    rules_.changed(what);
    work();
}

void follow_engine::authenticated() {
    if (stopping_) return;
    end_refusal();
    work();
}

// The refusal may be over: a pause after it may be long, and the next read does not wait for its end.
void follow_engine::end_refusal() {
    if (!std::exchange(refused_, false)) return;
    refusal_pauses_ = toolbox(on_).make_refusal_back_off();
    pausing_ = false;
    rules_.resume();
}

bool follow_engine::watches(node_read what, const std::string& path) const {
    return path == path_ && rules_.watches(what);
}

void follow_engine::for_each_watch(const std::function<void(node_read, const std::string&)>& f) const {
    if (leave_data_ || rules_.watches(node_read::stat)) f(node_read::stat, path_);
    if (leave_children_ || rules_.watches(node_read::children)) f(node_read::children, path_);
}

// ---------------------------------------------------------------------------------------------- what follows

void follow_engine::work() {
    if (stopping_ || ended_) return;
    if (const auto next = rules_.next_read()) feed_.read(*next, path_);
    if (rules_.take_left()) feed_.leave(node_read::stat, path_);
    if (rules_.put_off()) pause(refused_ ? refusal_pauses_ : pauses_);
}

void follow_engine::pause(back_off& pauses) {
    if (pausing_) return;
    pauses.then(strand_, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->pausing_ = false;
        self->rules_.resume();
        self->work();
    });
    pausing_ = true;
}

// The listener may call tell_next() or stop(): so the request is cleared before.
void follow_engine::tell(node_report report) {
    who_.reset();
    if (const node_follower::listener to = std::exchange(tell_, nullptr)) to(std::move(report));
}

void follow_engine::tell_end() {
    assert(ended_);
    node_report report;
    report.mark.code = ended_;
    report.ended = true;
    tell(std::move(report));
}

// -------------------------------------------------------------------------------------------------- the end

void follow_engine::stop() noexcept {
    asio::dispatch(strand_, [self = shared_from_this()] { self->stop_now(); });
}

void follow_engine::stop_now() {
    if (std::exchange(stopping_, true)) return;
    if (!ended_) ended_ = errc::client_closed;
    tell_end();
    if (!up_) return end();
    begin_to_leave();
}

void follow_engine::begin_to_leave() {
    assert(up_ && stopping_);
    work_ = toolbox(on_).begin_background_work();
    leave_data_ = rules_.watches(node_read::stat);
    leave_children_ = rules_.watches(node_read::children);
    const bool reading = rules_.under_way();
    rules_ = follow_rules(what_);  // from now on no watch is reported
    if (reading) return when_answered(&follow_engine::leave);  // the read leaves a watch, too
    leave();
}

// Calls `next` when all that was sent before has been answered: servers answer in order.
void follow_engine::when_answered(void (follow_engine::*next)()) {
    const pending_data fence = toolbox(on_).start_exists("/");
    fence.then([self = shared_from_this(), next] {
        if (self->work_) (*self.*next)();  // otherwise connection and watches are gone
    });
}

void follow_engine::leave() {
    if (std::exchange(leave_data_, false)) feed_.leave(node_read::stat, path_);
    if (std::exchange(leave_children_, false)) feed_.leave(node_read::children, path_);
    when_answered(&follow_engine::end);
}

void follow_engine::end() {
    assert(stopping_ || !up_);
    feed_ = node_feed();
    work_.reset();
    pauses_ = toolbox(on_).make_back_off();  // a pending pause would keep the loop running
    refusal_pauses_ = toolbox(on_).make_refusal_back_off();
    stopped_.fire();
}

}  // namespace zkasio::detail
