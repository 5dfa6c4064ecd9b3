#include <zkasio/detail/core.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cstdio>

namespace zkasio {

std::string_view to_string(session_state s) noexcept {
    switch (s) {
        case session_state::connecting: return "connecting";
        case session_state::connected: return "connected";
        case session_state::suspended: return "suspended";
        case session_state::expired: return "expired";
        case session_state::auth_failed: return "auth_failed";
        case session_state::closed: return "closed";
    }
    return "unknown";
}

std::string_view to_string(loss_reason r) noexcept {
    switch (r) {
        case loss_reason::none: return "held";
        case loss_reason::released: return "released";
        case loss_reason::session_expired: return "session expired";
        case loss_reason::lease_ended: return "lease ended";
        case loss_reason::node_deleted: return "node deleted";
        case loss_reason::suspended: return "connection lost";
        case loss_reason::closed: return "client closed";
        case loss_reason::forked: return "held by the parent process";
    }
    return "unknown";
}

namespace detail {
namespace {

std::string hex(std::int64_t id) {
    char text[20];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(id));
    return text;
}

// How many bytes of paths one heartbeat carries, and one path more at most; more nodes take turns.
constexpr std::size_t heartbeat_budget = 200'000;

}  // namespace

// The sink is a user's: it is called by itself, not in the middle of what is being logged. What it throws is nobody's.
void core::log(std::string_view line) {
    if (options_.log()) try {
            asio::post(strand_, [self = shared_from_this(), text = std::string(line)] {
                try {
                    self->options_.log()(text);
                } catch (...) {
                }
            });
        } catch (...) {  // no memory
        }
}

// What a recipe has asked for with `then`: on the strand, in order with everything else.
void core::call(const std::function<void()>& callback) noexcept {
    try {
        callback();
    } catch (const std::exception& e) {
        log(std::string("a callback has thrown: ") + e.what());
    } catch (...) {
        log("a callback has thrown");
    }
}

// --------------------------------------------------------------------------------------------------- the link

void core::on_link(link_state s) noexcept {
    link_ = s;
    switch (s) {
        case link_state::connected: return link_up();
        case link_state::disconnected: return link_down();
        case link_state::expired:
            session_over_ = errc::session_expired;
            if (resume_) session_->session_id = resume_->id();  // refused: this is the one that was asked for
            session_over_reason_ = "session " + hex(session_->session_id) + " has expired";
            return;
        case link_state::auth_failed:
            given_up_ = std::max(given_up_, session_->lease.session_timeout());  // servers hang up on it, and no more than that
            session_over_ = zk_errc::auth_failed;
            session_over_reason_ = "a server has refused a credential";
            return;
    }
}

void core::link_up() {
    failed_attempts_ = unanswered_handshakes_ = 0;
    connected_since_ = clock::now();
    attempt_deadline_ = time_point::max();
    resume_.reset();
    session_asked_for_ = false;
    again_not_before_ = {};
    again_refused_ = 0;
    expiring_.clear();
    session_->session_id = backend_->session_id();
    const auto granted = backend_->session_timeout();
    session_->timeout_ms = granted.count();
    // The handshake was sent after the attempt began, and it reached the leader.
    session_->lease.connected(attempt_began_, granted, half_tick(options_.tick(), options_.session_timeout(), granted));
    last_submit_ = clock::now();
    lease_changed();
    check_tick(granted);
    publish(session_state::connected, "session " + hex(session_->session_id) + " on " + backend_->current_server() +
                                          ", timeout " + std::to_string(session_->timeout_ms) + " ms");
    schedule_flush();
}

// Leases are right with such a tick, too, but what the servers have granted says that it is wrong, or that theirs is no usual
// configuration.
void core::check_tick(client_options::duration granted) {
    const auto tick = options_.tick();
    if (tick == client_options::duration::zero()) return;
    const auto ms = [](client_options::duration d) { return std::to_string(d.count()) + " ms"; };
    if (granted < 2 * tick)
        log("tick: the session timeout of " + ms(granted) + " is below two ticks of " + ms(tick) + "; leases are short");
    else if (granted > options_.session_timeout() && granted > 2 * tick)
        log("tick: " + ms(tick) + " is not used, the servers' least session timeout of " + ms(granted) + " speaks of longer ticks");
}

void core::link_down() {
    disconnected_since_ = clock::now();
    forget_given_up();
    // What changes meanwhile is told after the reconnect, but not in the order in which it happened.
    for (const auto& [number, h] : session_->holds)
        for (hold::own_node& node : h->nodes) node.watched = false;
    begin_waiting_for_connection(disconnected_since_);
    last_failure_ = backend_->last_failure();
    connect_not_before_ = {};
    if (options_.suspension() == suspension_policy::lose) end_all_holds(loss_reason::suspended);
    publish(session_state::suspended, last_failure_.empty() ? "connection lost" : "connection lost: " + last_failure_);
}

// ----------------------------------------------------------------------------------------------- the session

// The end of a session: everything that belongs to it completes now, and nothing of it is seen again.
void core::end_session(std::error_code code, std::string reason) {
    const session_record_ptr ended = session_;
    const bool refused = code == zk_errc::auth_failed;
    // A refused credential of add_auth() is not presented again; one of the options would be refused for ever.
    const bool may_be_new = std::exchange(unconfirmed_auths_, 0) > 0;
    const bool final = refused && !may_be_new;
    const bool renew = !final && options_.renewal() == session_renewal::automatic && closing_ == closing::no;
    ended->over.store(true, std::memory_order_release);
    retire_backend();
    resume_.reset();
    session_asked_for_ = false;
    {
        const std::lock_guard lock(session_mutex_);
        session_ = std::make_shared<session_record>();
    }
    // Before any callback: what these ask for belongs to the next session.
    std::vector<op_id> over;
    for (const auto& [id, op] : operations_)
        if (op.what || !renew) over.push_back(id);  // without a request: somebody who waits for a connection
    publish(refused ? session_state::auth_failed : session_state::expired, std::move(reason), ended->session_id);
    if (renew) publish(session_state::connecting, "opening a new session");

    for (const auto& [number, h] : std::map(ended->holds)) end_hold(h, loss_reason::session_expired);
    for (const watch_ptr& w : watches_.clear()) fire(w->fired, code);
    for (const op_id id : over) fail(id, code);
    again_.clear();
    urgent_.clear();
    std::erase_if(outbox_, [&](op_id id) { return !operations_.contains(id); });
    begin_waiting_for_connection({});
    fire(ended->ended, code);
    end_locals(*ended, code);

    if (!renew) {
        resolver_.cancel();
        resolve_at_ = time_point::max();
        return;
    }
    resolve();
}

void core::end_locals(session_record& e, std::error_code why) {
    for (const auto& [key, weak] : std::exchange(e.locals, {}))
        if (const auto part = weak.lock()) part->session_over(why);
}

void core::publish(session_state s, std::string reason, std::int64_t session_id) {
    state_.store(s, std::memory_order_release);
    log(std::string(to_string(s)) + ": " + reason);
    const session_event event{s, session_id, std::move(reason)};
    constexpr std::size_t longest = 256;  // nobody reads: keep the newest
    sweep_subscriptions();
    for (const auto& weak : subscriptions_) {
        const auto s_ = weak.lock();
        if (!s_) continue;
        {
            const std::lock_guard lock(s_->mutex);
            if (s_->queue.size() == longest) s_->queue.pop_front();
            s_->queue.push_back(event);
        }
        fire(std::exchange(s_->arrival, std::make_shared<one_shot_state>()));
    }
}

void core::subscribe(const std::shared_ptr<event_subscription>& s) {
    {
        const std::lock_guard lock(s->mutex);
        s->queue.push_back({state(), session_->session_id, "the state when events() was called"});
    }
    if (subscriptions_.size() > 2 * subscriptions_swept_ + 16) sweep_subscriptions();
    subscriptions_.push_back(s);
}

void core::sweep_subscriptions() {
    std::erase_if(subscriptions_, [](const auto& weak) { return weak.expired(); });
    subscriptions_swept_ = subscriptions_.size();
}

session_credentials core::credentials() const {
    return {backend_ ? backend_->session_id() : 0, backend_ ? backend_->session_password() : std::string()};
}

void core::add_auth(auth_info who) {
    if (!has_auth(who)) auth_.push_back(std::move(who));
}

bool core::has_auth(const auth_info& who) const { return std::find(auth_.begin(), auth_.end(), who) != auth_.end(); }

void core::set_servers(server_list servers) {
    servers_.hosts = std::move(servers.hosts);
    {
        const std::lock_guard lock(session_mutex_);
        servers_.text = std::move(servers.text);
    }
    if (closing_ == closing::no && !over()) resolve();
}

// ----------------------------------------------------------------------------------------- holds and the lease

void core::add_hold(const hold_ptr& h) {
    if (forked()) return end_hold(h, loss_reason::forked);
    if (h->session->over || closing_ != closing::no)
        return end_hold(h, closing_ != closing::no ? loss_reason::closed : loss_reason::session_expired);
    if (options_.suspension() == suspension_policy::lose && link_ != link_state::connected)
        return end_hold(h, loss_reason::suspended);
    for (const hold_ptr& part : h->parts) {
        if (const loss_reason why = part->reason; why != loss_reason::none) return end_hold(h, why, part->lost_node);
        part->composites.push_back(h);
    }
    const time_point now = clock::now();
    h->session->add(h);
    h->session->watch_nodes_at(*h, now + h->session->lease.session_timeout() / 4);
    check_leases(now);
    heartbeat(now);
    rearm_timer(now);
}

void core::end_hold(const hold_ptr& h, loss_reason why, const hold::own_node* lost) {
    if (h->reason != loss_reason::none) return;
    if (lost) h->lost_node = lost;
    h->reason = why;
    h->session->drop(h);
    for (const hold_ptr& part : h->parts)
        std::erase_if(part->composites, [&](const auto& whole) { return whole.expired() || whole.lock() == h; });
    for (const auto& weak : std::exchange(h->composites, {}))
        if (const hold_ptr whole = weak.lock()) end_hold(whole, why, lost);
    // A node that is about to be removed takes its watch along.
    for (hold::own_node& node : h->nodes)
        if (const watch_ptr w = std::exchange(node.watch, nullptr); w && !h->removing) {
            w->fired->then = {};
            leave_watch(w);
        }
    const std::error_code code = why == loss_reason::released ? errc::lock_released : errc::lock_lost;
    fire(h->renewed, code);
    fire(h->lost, why == loss_reason::released ? code : std::error_code());
}

void core::end_all_holds(loss_reason why) {
    for (const auto& [number, h] : std::map(session_->holds)) end_hold(h, why);
}

void core::confirm_holds() {
    for (const auto& [number, h] : std::exchange(session_->unconfirmed, {})) {
        h->confirmed = true;
        fire(h->renewed);
    }
}

void core::lease_changed() {
    const time_point end = session_->lease.end();
    session_->lease_end.store(end.time_since_epoch().count(), std::memory_order_release);
    if (!session_->unconfirmed.empty() && end > clock::now()) confirm_holds();
}

void core::check_leases(time_point now) {
    if (session_->holds.empty()) return;
    if (session_->lease.end() > now) return confirm_holds();
    if (session_->holds.size() == session_->unconfirmed.size()) return;
    for (const auto& [number, h] : std::map(session_->holds))
        if (h->confirmed) end_hold(h, loss_reason::lease_ended);
}

core::time_point core::heartbeat_due(time_point now) const {
    const session_record& e = *session_;
    const auto allowed = e.last_heartbeat + e.lease.session_timeout() / 16;  // however they end, not more often than this
    // Without a lease, somebody waits for one.
    return std::max(allowed, e.lease.end() > now ? e.lease.heartbeat_due() : e.lease.renewable_from());
}

// A transaction of the whole ensemble that changes nothing, and that says of each held node whether it is there.
void core::heartbeat(time_point now) {
    session_record& e = *session_;
    if (e.holds.empty() || e.heartbeat_under_way || link_ != link_state::connected || closing_ != closing::no) return;
    if (now < heartbeat_due(now)) return;
    e.last_heartbeat = now;

    multi_request beat;
    auto checked = std::make_shared<std::vector<std::pair<hold_ptr, hold::own_node*>>>();
    std::size_t bytes = 0;
    for (std::size_t n = 0; n < e.holds.size() && bytes < heartbeat_budget; ++n) {
        auto next = e.holds.lower_bound(e.next_to_check.first);
        if (next == e.holds.end()) next = e.holds.begin();
        const auto& [number, h] = *next;
        std::size_t i = number == e.next_to_check.first ? e.next_to_check.second : 0;
        for (; i < h->nodes.size() && bytes < heartbeat_budget; ++i) {
            hold::own_node& node = h->nodes[i];
            if (node.unreadable) continue;
            bytes += node.path.size() + servers_.chroot.size() + 25;
            beat.ops.emplace_back(check_op{node.path, any_version});
            checked->emplace_back(h, &node);
        }
        const bool whole = i == h->nodes.size();
        e.next_to_check = {whole ? number + 1 : number, whole ? 0 : i};
    }
    e.heartbeat_under_way = true;
    request_internally(std::move(beat), [this, on = session_, checked](reply&& r) {
        on->heartbeat_under_way = false;
        if (on != session_) return;
        bool node_gone = false;
        for (std::size_t i = 0; i < std::min(r.results.size(), checked->size()); ++i) {
            const std::error_code& code = r.results[i].code;
            if (code == zk_errc::no_node) {
                node_gone = true;
                end_hold((*checked)[i].first, loss_reason::node_deleted, (*checked)[i].second);
            } else if (code == zk_errc::no_auth) {
                // Somebody has changed its ACL: what is left is to know that the session lives.
                (*checked)[i].second->unreadable = true;
                log("heartbeat: no permission to check " + (*checked)[i].second->path);
            }
        }
        const time_point at = clock::now();
        if (r.code && !node_gone && !r.sent) log("heartbeat: " + r.code.message());
        if (node_gone)
            heartbeat(at);  // the others were not looked at
        rearm_timer(at);
    }, urgency::first);
}

// What a write is worth for the lease depends on what was answered before it. So while nothing else is sent, this is: a read that needs
// no permission, and below a chroot no node. The library's own pings, whose times nobody knows, have nothing left to do.
void core::read_when_idle(time_point now) {
    if (now < own_read_due()) return;
    ++own_reads_;
    request_internally(exists_request{"/"}, [this](reply&&) { --own_reads_; });
}

core::time_point core::own_read_due() const {
    const bool idle = link_ == link_state::connected && closing_ == closing::no && outbox_.empty();
    return idle ? last_submit_ + session_->lease.read_interval() : time_point::max();
}

// A lock that is held for longer than a moment wants to know at once when somebody deletes its node.
void core::watch_own_nodes(time_point now) {
    auto& due = session_->to_watch;
    while (link_ == link_state::connected && !due.empty() && due.begin()->first <= now) {
        const hold_ptr h = session_->holds.at(due.begin()->second);
        due.erase(due.begin());
        for (hold::own_node& node : h->nodes)
            if (!node.watch) watch_own_node(h, node);
    }
}

void core::watch_hold(const hold_ptr& h) {
    if (h->reason != loss_reason::none || link_ != link_state::connected) return;
    for (hold::own_node& node : h->nodes)
        if (!node.watch) watch_own_node(h, node);
    for (const hold_ptr& part : h->parts) watch_hold(part);
}

void core::watch_own_node(const hold_ptr& h, hold::own_node& node) {
    auto w = node.watch = std::make_shared<watch_state>();
    w->path = node.path;
    w->fired->then = [this, h, &node, raw = w.get()] {
        node.watch.reset();
        node.watched = false;
        h->session->watch_nodes_at(*h, clock::now());
        if (raw->event == node_event::removed) end_hold(h, loss_reason::node_deleted, &node);
    };
    operation op;
    op.what = get_request{node.path, true};
    op.pinned = session_;
    op.watch = w;
    op.internal = [this, h, &node, w](reply&& r) {
        node.watched = !r.code && node.watch == w;
        if (!r.code && node.watch != w) leave_watch(w);  // the hold has ended meanwhile
        if (!r.code && r.stat.ephemeral_owner != h->session->session_id.load())
            end_hold(h, loss_reason::node_deleted, &node);  // somebody else's, by the same name (unfair_mutex)
        if (!r.code) return;
        w->fired->then = {};
        node.watch.reset();
        const auto pause = h->session->lease.session_timeout() / 16;
        if (r.code != zk_errc::no_node) h->session->watch_nodes_at(*h, clock::now() + pause);  // a refusal, or a lost connection
        if (r.code == zk_errc::no_node) end_hold(h, loss_reason::node_deleted, &node);
    };
    enqueue(next_id(), std::move(op));
}

// ------------------------------------------------------------------------------------------------------ closing

void core::begin_close() {
    if (left_behind() || closing_ != closing::no) return;
    closing_ = closing::draining;
    resolver_.cancel();
    resolve_at_ = time_point::max();
    close_deadline_ = clock::now() + options_.close_timeout();

    session_->over.store(true, std::memory_order_release);
    end_all_holds(loss_reason::closed);
    for (const watch_ptr& w : watches_.clear()) fire(w->fired, errc::client_closed);
    fire(session_->ended, errc::client_closed);
    end_locals(*session_, errc::client_closed);
    for (const op_id id : std::exchange(urgent_, {})) fail(id, errc::client_closed);
    for (const op_id id : std::exchange(again_, {})) fail(id, errc::client_closed);
    for (const op_id id : std::exchange(outbox_, {})) fail(id, errc::client_closed);
    for (asio::cancellation_signal& task : background_) task.emit(asio::cancellation_type::terminal);
    asio::post(strand_, [self = shared_from_this()] { self->continue_close(); });
}

void core::continue_close() {
    if (left_behind()) return;
    const time_point now = clock::now();
    if (closing_ == closing::goodbye && now < close_deadline_) return rearm_timer(now);
    if (closing_ == closing::draining) {
        const bool wait = (issued_ > own_reads_ && link_ == link_state::connected) || !background_.empty();
        if (wait && now < close_deadline_) return rearm_timer(now);
        if (now >= backend_deadline_) read_what_has_come();
        if (backend_ && link_ == link_state::connected && backend_->send_goodbye()) {
            closing_ = closing::goodbye;
            backend_deadline_ = time_point::max();  // from here on only the answer counts
            close_deadline_ = now + options_.close_timeout();
            return drive();
        }
    }
    if (closing_ == closing::draining || closing_ == closing::goodbye)
        finish_close(without_goodbye());
}

close_result core::without_goodbye() const {
    // One that was asked for may exist, and so does one that was to be resumed.
    const bool none = session_->session_id == 0 && !session_asked_for_ && !resume_;
    return none ? close_result::confirmed : close_result::session_left_to_expire;
}

// A server that loses its leader drops all its connections. So one that has stood for so long shows that there was one leader all the
// time, which has ended every session that nobody came back to.
void core::forget_given_up() {
    if (clock::now() - connected_since_ > 2 * given_up_) given_up_ = {};
}

void core::let_go() {
    closing_ = closing::done;
    urgent_.clear();
    again_.clear();
    outbox_.clear();
    own_reads_ = 0;
    watches_.clear();
    session_->unconfirmed.clear();
    for (const auto& [number, h] : std::exchange(session_->holds, {})) {
        for (hold::own_node& node : h->nodes) node.watch.reset();
        h->lost->then = {};
    }
    for (const auto& [key, weak] : session_->locals)
        if (const auto part = weak.lock()) part->loop_over();
    // What was to follow may keep alive what is waiting for it.
    for (auto& [id, op] : operations_)
        if (op.kept_reply) op.kept_reply->answered->then = {};
    {
        const auto operations = std::exchange(operations_, {});
        const auto waits = std::exchange(waits_, {});
    }
    // Their slots keep us alive; the coroutines behind them are gone by now.
    background_.clear();
}

void core::finish_close(close_result how) {
    closing_ = closing::done;
    close_deadline_ = time_point::max();
    if (link_ == link_state::connected) forget_given_up();
    const bool given_up = how == close_result::confirmed && given_up_ != duration::zero();
    close_result_ = given_up ? close_result::session_left_to_expire : how;
    retire_backend();
    publish(session_state::closed, given_up                            ? "closed; an earlier session was left to expire"
                                   : how == close_result::confirmed ? "closed"
                                                                       : "closed without a server; the session is left to expire");
    end_all(errc::client_closed);
    rearm_timer(clock::now());
    if (shutdown_) shutdown_->remove(this);
    fire(closed_);
}

// Whatever is still pending but those who wait for the end itself.
void core::end_all(std::error_code code) {
    std::vector<op_id> over;
    for (const auto& [id, op] : operations_) over.push_back(id);
    for (const op_id id : over) fail(id, code);
    over.clear();
    for (const auto& [id, w] : waits_)
        if (w.on != closed_) over.push_back(id);
    for (const op_id id : over) {
        if (const auto w = waits_.find(id); w != waits_.end()) w->second.on->leave(id);
        end_wait(id, code);
    }
}

bool core::left_behind() {
    if (!forked()) return false;
    if (closing_ == closing::done) return true;
    closing_ = closing::done;
    resolver_.cancel();
    retire_backend();
    session_->over.store(true, std::memory_order_release);
    publish(session_state::closed, "this is a child process; the session goes on in the one that has forked it");
    end_all_holds(loss_reason::forked);
    for (const watch_ptr& w : watches_.clear()) fire(w->fired, errc::forked);
    fire(session_->ended, errc::forked);
    end_locals(*session_, errc::forked);
    outbox_.clear();
    end_all(errc::forked);
    for (asio::cancellation_signal& task : background_) task.emit(asio::cancellation_type::terminal);
    rearm_timer(clock::now());
    fire(closed_, errc::forked);
    return true;
}

}  // namespace detail
}  // namespace zkasio
