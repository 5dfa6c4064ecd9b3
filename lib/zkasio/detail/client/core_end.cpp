// The ends of a session, of the client, of its event loop, and of the client's copy in a child process.

#include <zkasio/detail/client/core.hpp>

#include <zkasio/session_local.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace zkasio::detail {

// Ends the session: everything that belongs to the session completes now, and no later session sees any of it.
void core::end_session() {
    auto [code, reason] = sessions_.take_ending();
    const bool refused = code == zk_errc::auth_failed;
    // A refused credential of add_auth() is not presented again; one of the options, or a login, would be refused for
    // ever.
    const bool login_refused = link_.is_open() && link_.backend().login_refused();
    const bool may_be_new = std::exchange(auth_.unconfirmed, 0) > 0 && !login_refused;
    const bool final = refused && !may_be_new;
    const bool may_renew = options_.renewal() == session_renewal::automatic && !options_.reads_only();
    const bool renew = !final && may_renew && closing_ == closing::no;
    sessions_.current()->over.store(true, std::memory_order_release);
    link_.retire();
    // Before any callback: one of them may make the link open its backend.
    if (auto former = sessions_.take_former(); former && closing_ == closing::no)
        link_.end_first(std::move(*former));
    const session_record_ptr ended = sessions_.renew();
    awaits_chroot_ = creates_chroot();
    requests_.hold_back(awaits_chroot_);
    requests_.ephemerals().clear();  // before any callback creates a node of the next session
    // Collected before any callback: requests that the callbacks submit belong to the next session.
    const std::vector<op_id> over = requests_.of_this_session(renew);
    sessions_.publish(refused ? session_state::auth_failed : session_state::expired, std::move(reason),
                      ended->session_id);
    if (renew) sessions_.publish(session_state::connecting, "opening a new session");

    holds_.end_all(*ended, loss_reason::session_expired);
    requests_.end_watches(code);
    requests_.end(over, code);
    fire_end(*ended, code);
    end_locals(*ended, code);
    if (renew) {
        requests_.feeds_disconnected();
        link_.resolve();
    } else {
        requests_.feeds().closed(code);
        link_.stop_resolving();
        if (link_.has_former()) link_.resolve();  // its nodes are not to outlive what this client believes
    }
}

void core::fire_end(session_record& of, std::error_code why) {
    waits_.fire(of.ended, why);
    if (const one_shot_ptr waited = std::exchange(of.extended, nullptr)) waits_.fire(waited, why);
}

void core::end_locals(session_record& of, std::error_code why) {
    for (const auto& [key, weak] : std::exchange(of.locals, {}))
        if (const auto local = weak.lock()) local->session_over(why);
}

// ------------------------------------------------------------------------------------------------------ closing

void core::begin_close() {
    if (left_behind() || closing_ != closing::no) return;
    closing_ = closing::draining;
    work_.end_all(errc::client_closed);
    link_.stop_resolving();
    close_deadline_ = clock::now() + options_.close_timeout();

    session_record& s = *sessions_.current();
    s.over_why = loss_reason::closed;
    s.over.store(true, std::memory_order_release);
    holds_.end_all(s, loss_reason::closed);
    requests_.end_watches(errc::client_closed);
    fire_end(s, errc::client_closed);
    end_locals(s, errc::client_closed);
    requests_.feeds().closed(errc::client_closed);
    requests_.end_unsent(errc::client_closed);
    background_.cancel();
    asio::post(strand_, [self = shared_from_this()] { self->continue_close(); });
}

bool core::begin_hand_over() {
    if (left_behind() || closing_ != closing::no || sessions_.current()->over || !link_.connected()) return false;
    session_credentials ours = sessions_.credentials();
    if (ours.id() == 0) return false;
    std::vector<std::shared_ptr<session_local>> locals;
    for (const auto& [key, weak] : sessions_.current()->locals)
        if (auto local = weak.lock()) locals.push_back(std::move(local));
    bool wait = false;
    for (const auto& local : locals) wait = local->waits() || wait;
    if (wait || work_.any()) return false;
    {
        const std::lock_guard lock(left_mutex_);
        left_.emplace(std::move(ours));
    }
    hands_over_ = true;
    begin_close();
    return true;
}

std::optional<session_credentials> core::session_left() const {
    if (forked()) return std::nullopt;  // another thread of the parent may have had the mutex
    const std::lock_guard lock(left_mutex_);
    return left_;
}

// For answers and tasks, or for a connection by which the session can be ended.
bool core::close_waits() const noexcept {
    if (!background_.empty()) return true;
    if (link_.connected()) return !close_is_drained();
    const bool none_to_end = sessions_.without_goodbye() == close_result::confirmed && !link_.has_former();
    const bool is_left = hands_over_ || sessions_.current()->is_shared;
    return link_.is_open() && link_.backend().is_zookeeper() && !is_left && !none_to_end;
}

bool core::may_return() const noexcept {
    const session_record& s = *sessions_.current();
    const bool is_ours = link_.is_open() && !link_.is_of_former() && s.session_id != 0 && !s.is_shared;
    return is_ours && !link_.connected() && close_waits() && background_.empty();
}

bool core::close_goes_on() const noexcept {
    if (closing_ == closing::returning) return !link_.has_former();
    return closing_ == closing::draining && (!close_waits() || may_return());
}

// The connection is lost, as those to a server that restarts are. Another one ends the session; for all else it is
// over, and the library has forgotten its watches.
void core::return_to_close() {
    closing_ = closing::returning;
    close_deadline_ = std::min(close_deadline_, sessions_.over_by(clock::now()));
    link_.end_over_next_connection(sessions_.credentials());
    drive();
}

void core::former_session_over() noexcept {
    if (closing_ == closing::returning)
        own_session_ended_ = true;
    else
        sessions_.former_over();
}

void core::continue_close() {
    if (left_behind()) return;
    const time_point now = clock::now();
    const bool in_time = now < close_deadline_;
    if (in_time && (closing_ == closing::goodbye || (closing_ == closing::returning && link_.has_former())))
        return rearm_timer(now);
    if (closing_ == closing::draining) {
        if (in_time && may_return()) return return_to_close();
        if (in_time && close_waits()) return rearm_timer(now);
        link_.read_if_late(now);
        if (sessions_.is_ending()) return drive();
        if (in_time && may_return()) return return_to_close();
        if (!hands_over_ && link_.is_open() && link_.connected()) {
            close_deadline_ = now + options_.close_timeout();
            if (link_.backend().send_goodbye()) {
                closing_ = closing::goodbye;
                link_.await_goodbye();
                return drive();
            }
            // It cannot be sent: the connection is dead, or its server does not read what was sent before.
            if (link_.backend().is_zookeeper() && !sessions_.current()->is_shared) return return_to_close();
        }
    }
    // The answer may have come, and wait behind the timer.
    if (closing_ == closing::returning) link_.read_answer_to_goodbye();
    if (closing_ == closing::goodbye && link_.is_open())
        own_session_ended_ = link_.backend().answer_to_goodbye() == goodbye_result::session_over;
    if (closing_ != closing::no && closing_ != closing::done)
        finish_close(own_session_ended_ ? close_result::confirmed : sessions_.without_goodbye());
}

void core::finish_close(close_result how) {
    assert(closing_ != closing::no && closing_ != closing::done);
    closing_ = closing::done;
    close_deadline_ = time_point::max();
    waits_.no_more(errc::client_closed);
    const bool one_left = sessions_.left_one_behind();
    if (hands_over_) how = close_result::session_left_to_expire;
    const bool given_up = how == close_result::confirmed && one_left;
    close_result_ = given_up ? close_result::session_left_to_expire : how;
    link_.retire();
    sessions_.publish(session_state::closed, hands_over_ ? "closed; the session is left to whoever resumes it"
                                             : given_up  ? "closed; an earlier session was left to expire"
                                             : how == close_result::confirmed
                                                 ? "closed"
                                                 : "closed without a server; the session is left to expire");
    requests_.end_all(errc::client_closed);
    waits_.end_all(errc::client_closed, closed_);
    rearm_timer(clock::now());
    if (shutdown_) shutdown_->remove(this);
    telemetry_.counters.watches.set(0);
    telemetry_.counters.pending.set(0);
    telemetry_.hand_over();
    waits_.fire(closed_);
}

// ------------------------------------------------------------------------------------- the loop, and the process

void core::let_go() {
    closing_ = closing::done;
    session_record& s = *sessions_.current();
    holds_.let_go(s);
    link_.let_go();
    for (const auto& [key, weak] : s.locals)
        if (const auto local = weak.lock()) local->loop_over();
    waits_.no_more(errc::client_closed);
    waits_.clear();
    requests_.clear();
    strand_.end();
}

bool core::left_behind() {
    if (!forked()) return false;
    if (closing_ == closing::done) return true;
    closing_ = closing::done;
    work_.end_all(errc::forked);
    link_.stop_resolving();
    link_.retire();
    session_record& s = *sessions_.current();
    s.over_why = loss_reason::forked;
    s.over.store(true, std::memory_order_release);
    sessions_.publish(session_state::closed,
                      "this is a child process; the session goes on in the one that has forked it");
    holds_.end_all(s, loss_reason::forked);
    requests_.end_watches(errc::forked);
    fire_end(s, errc::forked);
    end_locals(s, errc::forked);
    requests_.feeds().closed(errc::forked);
    requests_.end_all(errc::forked);
    waits_.end_all(errc::forked, closed_);
    background_.cancel();
    rearm_timer(clock::now());
    waits_.fire(closed_, errc::forked);
    return true;
}

}  // namespace zkasio::detail
