#include <zkasio/detail/client/core.hpp>

#include <zkasio/detail/requests/validate.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace zkasio::detail {
namespace {

void check_range(client_options::duration value, const char* name) {
    if (value <= client_options::duration::zero())
        throw error(errc::invalid_argument, "client options", {}, std::string(name) + " must be positive");
    if (value > std::chrono::hours(24))  // the C client counts milliseconds in an int, and multiplies
        throw error(errc::invalid_argument, "client options", {}, std::string(name) + " is longer than a day");
}

void check(const client_options& options) {
    if (const create_options* const how = options.chroot_to_create()) {
        if ((how->mode() != create_mode::persistent && how->mode() != create_mode::container) || how->is_protected())
            throw error(errc::invalid_argument, "client options", {},
                        "create_chroot: a chroot is persistent or a container, and is not protected");
    }
    for (const auth_info& a : options.auth())
        validate(add_auth_request{a.scheme(), a.credential()}, 0, "client options");
    validate(set_acl_request{"/", options.default_acl(), any_version}, 0, "client options");
    check_range(options.session_timeout(), "session_timeout");
    // The C client waits 2/3 of what is asked for, in whole milliseconds, for the answer to its handshake.
    if (options.session_timeout() < std::chrono::milliseconds(100))
        throw error(errc::invalid_argument, "client options", {},
                    "session_timeout is shorter than 100 ms: no server could answer in time (they grant 2 of their "
                    "ticks at least)");
    check_range(options.connection_timeout(), "connection_timeout");
    check_range(options.close_timeout(), "close_timeout");
    if (options.tick() != client_options::duration::zero()) check_range(options.tick(), "tick");
    if (options.looks_every() != client_options::duration::zero()) check_range(options.looks_every(), "prefer");
    if (const int often = static_cast<int>(options.lease_renewal()); often < 2 || often > 4)
        throw error(errc::invalid_argument, "client options", {},
                    "lease_renewal must be a quarter, a third or a half of the session timeout");
}

}  // namespace

core::core(asio::any_io_executor executor, client_options options, backend_factory factory)
    : strand_(std::move(executor)),
      options_(std::move(options)),
      log_(strand_, options_.log(), options_.log_least()),
      telemetry_(strand_, options_.observer(), options_.observe_on()),
      waits_(log_, made_here_),
      work_(waits_),
      events_(waits_),
      auth_(options_.auth()),
      link_(*this, strand_, options_, std::move(factory), log_),
      sessions_(options_, link_, events_, log_, telemetry_),
      requests_(*this, link_, waits_, auth_, options_, log_, telemetry_),
      holds_(*this, link_, requests_, waits_, options_, log_),
      background_(strand_, log_),
      timer_(strand_) {
    check(options_);
}

// ------------------------------------------------------------------------------------------------------- asking

void core::start() {
    shutdown_ = &asio::use_service<shutdown_service>(asio::query(strand_, asio::execution::context));
    const auto let_go = [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->let_go();
    };
    const auto forked = [weak = weak_from_this()] {
        if (const auto self = weak.lock()) asio::post(self->strand_, [self] { self->left_behind(); });
    };
    shutdown_->add(this, {let_go, forked});
    known_->try_all(options_.tries_all_requests());
    awaits_chroot_ = creates_chroot();
    requests_.hold_back(awaits_chroot_);
    link_.start(shutdown_->reactor());
    sessions_.publish(session_state::connecting, "connecting to " + options_.servers());
    last_turn_ = clock::now();
    link_.resolve();
}

void core::complete(zkasio::acl& entries) {
    const bool is_default = detail::complete(entries, options_.default_acl());
    const bool warns = is_default && !options_.has_default_acl() && !forked();
    if (warns && options_.sasl())
        warn_once(warned_of_open_nodes_,
                  "nodes that are created without an ACL of their own are open to everybody, in spite of SASL: "
                  "client_options::default_acl(acl_of(acl_entry(permission::all, sasl_user(name)))) keeps them to this "
                  "user, default_acl(open_acl()) ends this warning");
    else if (warns && !options_.auth().empty())
        warn_once(warned_of_open_nodes_,
                  "nodes that are created without an ACL of their own are open to everybody, in spite of the client's "
                  "credentials: client_options::default_acl(creator_digest_acl(user, password)) keeps them to these, "
                  "default_acl(open_acl()) ends this warning");
    warn_of_certificate(entries);
}

void core::warn_of_certificate(const zkasio::acl& entries) {
    if (!options_.security() || options_.auth().empty() || forked()) return;
    const auto is_for_all_identities = [](const acl_entry& one) { return one.who().scheme() == "auth"; };
    if (std::any_of(entries.begin(), entries.end(), is_for_all_identities))
        warn_once(warned_of_certificate_,
                  "a node gets creator_all_acl(), through TLS: if this client shows a certificate, all that show the "
                  "same certificate may change the node, whatever their password. creator_digest_acl(user, password) "
                  "keeps the node to that user");
}

void core::warn_once(std::atomic<bool>& warned, const char* text) {
    if (warned.exchange(true)) return;
    asio::post(strand_, [self = shared_from_this(), text] { self->log_.warn(text); });
}

void core::ask(op_id id, command& c, request_receiver&& to) {
    // If this turn is late, the end of the connection may be unread: after submit(), the flush reads first.
    const bool may_be_alone = !flush_scheduled_ && closing_ == closing::no && !link_.is_late(clock::now());
    if (may_be_alone && requests_.submit_at_once(id, c, to)) return;
    requests_.submit(id, std::move(c), std::move(to));
}

void core::cancel(op_id id, sent_writes writes) {
    if (!waits_.cancel(id)) requests_.cancel(id, writes);
}

void core::add_hold(const hold_ptr& h) {
    if (forked()) return holds_.end(h, loss_reason::forked);
    holds_.add(h);
}

view_root core::keep_root(std::string path) {
    const std::lock_guard lock(roots_mutex_);
    return &*roots_.insert(std::move(path)).first;
}

bool core::creates_chroot() const noexcept {
    return options_.chroot_to_create() && !link_.chroot().empty() && !options_.reads_only();
}

void core::look_at_chroot(const session_record_ptr& of, const kept_reply_ptr& answer, bool as_of_now) {
    const auto ask = [&](request what, std::function<void(reply&&)> answered) {
        command c(std::move(what));
        c.pinned = of;
        c.patient = true;
        requests_.submit(std::move(c), std::move(answered), request_table::urgency::first);
    };
    if (as_of_now) ask(sync_request{"/"}, [](reply&&) {});
    ask(exists_request{"/"}, [this, answer](reply&& r) {
        answer->reply = std::move(r);
        waits_.fire(answer_of(answer));
    });
}

void core::chroot_is_known(const session_record& of) {
    if (&of != sessions_.current().get() || !std::exchange(awaits_chroot_, false)) return;
    requests_.hold_back(false);
    schedule_flush();
}

std::error_code core::set_servers(server_list servers) {
    if (forked()) return errc::forked;
    if (closing_ != closing::no) return errc::client_closed;
    link_.set_servers(std::move(servers));
    if (wants_connection()) link_.resolve();
    return {};
}

void core::run_in_background(asio::awaitable<void> task) {
    if (closing_ != closing::no || forked()) return;
    begin_task(std::move(task), std::make_shared<background_work::piece>(work_.begin()));
}

bool core::run_until_closed(asio::awaitable<void> task) {
    if (closing_ != closing::no || forked()) return false;
    begin_task(std::move(task), nullptr);
    return true;
}

void core::begin_task(asio::awaitable<void> task, std::shared_ptr<background_work::piece> work) {
    background_.run(std::move(task), shared_from_this(), [this, work = std::move(work)] {
        if (closing_ == closing::draining) continue_close();
    });
}

void core::wait_extended(op_id id, session_record& s, boot_clock::time_point beyond, receiver to) {
    if (s.over) return waits_.wait(id, s.ended, std::move(to));
    if (!s.extended) s.extended = std::make_shared<one_shot_state>();
    const one_shot_ptr on = s.extended;
    waits_.wait(id, on, std::move(to));
    if (s.leased_until() > beyond) waits_.fire(std::exchange(s.extended, nullptr));  // tells all: each looks for itself
}

std::shared_ptr<const void> core::begin_work() {
    struct work {
        work(core_ptr c, background_work::piece p) : on(std::move(c)), piece(std::move(p)) {}
        work(const work&) = delete;
        work& operator=(const work&) = delete;
        ~work() {
            asio::dispatch(on->strand_, [on = on, piece = std::move(piece)] {});
        }
        core_ptr on;
        background_work::piece piece;
    };
    return std::make_shared<const work>(shared_from_this(), work_.begin());
}

// ------------------------------------------------------------------------------------ what its parts ask and tell

bool core::wants_connection() {
    return !left_behind() && closing_ == closing::no && (!sessions_.is_final() || link_.has_former());
}

std::error_code core::refusal(const session_record* pinned) const {
    if (forked()) return errc::forked;
    if (closing_ != closing::no) return errc::client_closed;
    if (pinned && pinned->over.load(std::memory_order_relaxed)) return errc::session_expired;
    if (sessions_.state() == session_state::auth_failed) return zk_errc::auth_failed;
    if (sessions_.state() == session_state::expired) return errc::session_expired;
    return {};
}

bool core::session_lives() const {
    return closing_ == closing::no && link_.state() != link_state::expired && !sessions_.current()->over;
}

void core::request_waits() {
    if (link_.connected())
        schedule_flush();
    else
        rearm_timer(clock::now());
}

// The library may hold replies that came before this process was stopped for a while; the lease was checked when this
// turn began (fact 25). Failed writes are transactions too, but only success is beyond doubt.
void core::request_answered(const request& what, const reply& r, time_point sent, time_point now) {
    session_record& s = *sessions_.current();
    if (!r.sent) link_.answered();
    if (!r.code && is_write(what)) {
        s.written.store(sent.time_since_epoch().count(), std::memory_order_release);
        s.lease.write_answered(sent, now);
        holds_.lease_changed(s);
    } else if (!r.sent) {  // a server has answered, see reply::sent
        s.lease.answered(sent, now);
    }
}

void core::later(std::function<void()> f) {
    asio::post(strand_, [self = shared_from_this(), f = std::move(f)] { f(); });
}

void core::on_reply(op_id id, reply&& r) noexcept {
    tell_what_servers_lack();
    requests_.answered(id, std::move(r));
}

open_params core::to_open() const {
    open_params p = sessions_.to_open(auth_);
    p.known = known_;
    return p;
}

void core::tell_what_servers_lack() const noexcept {
    if (known_->has_news()) log_.warn(known_->take_news());
}

// "...:ZOO_WARN@function@line: text"
void core::log_library(std::string_view line) const noexcept {
    const bool failure = line.find("ZOO_ERROR@") != line.npos;
    log_.log(failure ? log_level::error : log_level::warning, line, {{"source", "ZooKeeper C client"}});
}

void core::on_link(link_state s) noexcept {
    if (link_.takes_for_former(s)) return;
    tell_what_servers_lack();
    link_.changed(s);
    switch (s) {
        case link_state::connected: return link_up();
        case link_state::disconnected: return link_down();
        case link_state::expired: return sessions_.expired();
        case link_state::auth_failed: return sessions_.refused(auth_);
    }
}

void core::link_up() {
    const time_point now = clock::now();
    telemetry_.counters.connections.add();
    requests_.connected(now);
    sessions_.connected(now);
    requests_.ephemerals().connected(id_of(*sessions_.current()));
    holds_.lease_changed(*sessions_.current());
    holds_.connected(now);
    sessions_.publish_connected();
    requests_.feeds_connected();
    requests_.ask_questions();
    schedule_flush();
}

void core::link_down() {
    const time_point now = clock::now();
    telemetry_.counters.connections_lost.add();
    requests_.disconnected(now);
    holds_.disconnected(*sessions_.current());
    sessions_.disconnected(now);
    warn_of_useless_connections();
    requests_.feeds_disconnected();
}

void core::warn_of_useless_connections() {
    constexpr int many = connection_pacing::many;
    const bool useless = link_.useless_connections() >= many, same = requests_.ended_with_same_request() >= many;
    const bool tell_useless = useless && !warned_of_useless_connections_;
    const bool tell_same = same && !warned_of_same_request_ && (tell_useless || !useless);
    warned_of_useless_connections_ = useless;
    warned_of_same_request_ = same && (warned_of_same_request_ || tell_same);
    if (!tell_useless && !tell_same) return;
    std::string text = std::to_string(many) + " connections in a row have ended " +
                       (useless ? "before any request was answered" : "with the same request unanswered");
    if (same)
        text += (useless ? "; with the same request each time: " : ": ") + requests_.request_of_end() +
                " (is it larger than the servers' jute.maxbuffer, or a request that they do not know?)";
    text += same ? "; who asks again is made to pause" : "; the next ones follow at growing pauses";
    log_.warn(text, {{"reason", link_.last_failure()}});
}

// -------------------------------------------------------------------------------------------------------- turns

void core::begin_turn(time_point now) {
    // Only a late timer proves that the loop did not run: there may have been nothing to do before.
    const auto late = now - std::max(timer_at_, last_turn_);
    if (late > sessions_.current()->lease.session_timeout() / 5 && link_.connected()) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(late).count();
        log_.warn("the event loop did not run for " + std::to_string(ms) + " ms");
    }
    last_turn_ = now;
    holds_.check_lease(now);
}

// Requests of one turn of the strand leave together: the flush runs behind all handlers that are queued already. If
// these bring more requests (a lock that is handed from one owner to the next, and released by each at once), the flush
// runs behind the next ones, too.
void core::schedule_flush() {
    if (!flush_scheduled_) post_flush(0, 0);
}

void core::post_flush(std::size_t seen, int passes) {
    constexpr int most_passes = 8;
    asio::post(strand_, [self = shared_from_this(), seen, passes] {
        self->flush_scheduled_ = false;
        const std::size_t now = self->requests_.waiting();
        if (now > seen && passes < most_passes) return self->post_flush(now, passes + 1);
        self->flush_turn();
    });
    flush_scheduled_ = true;
}

void core::flush_turn() {
    if (left_behind()) return;
    const time_point now = clock::now();
    begin_turn(now);
    if (closing_ != closing::goodbye) {
        link_.read_if_late(now);
        requests_.flush();
    }
    drive();
}

void core::on_ready(bool readable, bool writable) {
    if (left_behind()) return;
    link_.secure();
    if (left_behind() || !link_.is_open()) return;
    strand_.let_one_run_behind();
    begin_turn(clock::now());
    if (closing_ == closing::goodbye) {
        switch (link_.backend().answer_to_goodbye()) {
            case goodbye_result::none_yet: return drive();
            case goodbye_result::session_over: return finish_close(close_result::confirmed);
            case goodbye_result::connection_lost:
                // Others than ZooKeeper's servers hang up in place of an answer.
                if (link_.backend().is_zookeeper() && !sessions_.current()->is_shared) return return_to_close();
                return finish_close(sessions_.without_goodbye());
        }
    }
    link_.process(readable, writable);
    if (writable) requests_.writable();
    drive();
}

void core::on_timer() {
    const time_point now = clock::now();
    if (left_behind() || closing_ == closing::done) return;  // the timer was about to run when it was cancelled
    begin_turn(now);
    timer_at_ = time_point::max();
    if (now >= close_due(now)) return continue_close();
    link_.on_time(now);
    requests_.on_time(now);
    if (closing_ != closing::goodbye) link_.read_what_has_come();
    link_.give_up_attempt(now);
    sessions_.presume_expired(now);
    holds_.on_time(now);
    drive();
}

// See client_options::prefer().
bool core::may_move(time_point now) const {
    const session_record& s = *sessions_.current();
    if (!link_.nearer_is_up(now) || closing_ != closing::no) return false;
    if (s.holds.empty()) return true;
    return options_.suspension() != suspension_policy::lose && s.lease.end() - now >= s.lease.session_timeout() / 2;
}

// Who leaves a server does so when nothing is under way: for this, later requests wait for a moment.
void core::move_if_nearer(time_point now) {
    const bool may = may_move(now), goes = may && requests_.under_way() == 0;
    if (may && move_by_ == time_point::max()) move_by_ = now + sessions_.current()->lease.session_timeout() / 8;
    const bool waits = may && !goes && now < move_by_;
    requests_.hold_back(waits || awaits_chroot_);
    if (waits || std::exchange(move_by_, time_point::max()) == time_point::max()) return;
    if (goes) return link_.move_to_nearer();
    link_.look_for_nearer();  // the answers take too long, or it may not move any more
    schedule_flush();
}

// Called after anything that may have changed the backend's next events.
void core::drive() {
    if (left_behind()) return;
    telemetry_.counters.watches.set(requests_.watches());
    telemetry_.counters.pending.set(requests_.size());
    const time_point now = clock::now();
    holds_.check_lease(now);  // before unread answers are trusted
    if (closing_ != closing::goodbye) link_.read_if_late(now);
    if (sessions_.is_ending()) end_session();
    if (!link_.is_open() || closing_ == closing::done) return rearm_timer(now);
    if (closing_ == closing::goodbye) {
        link_.rearm_goodbye();
        return rearm_timer(now);
    }
    move_if_nearer(now);
    link_.pump(now);
    if (sessions_.is_ending()) return drive();
    rearm_timer(now);
}

// -------------------------------------------------------------------------------------------------------- timer

core::time_point core::due(time_point now) {
    const time_point move = link_.nearer_is_up(now) ? move_by_ : time_point::max();
    return std::min(
        {link_.due(), move, close_due(now), requests_.due(now), holds_.due(now), sessions_.presumed_expiry()});
}

core::time_point core::close_due(time_point now) const noexcept {
    return close_goes_on() ? now : close_deadline_;
}

// One timer for everything. The timer is set again only if something is due earlier than the timer would fire. If the
// timer fires too early, nothing is due yet, and the timer is set again.
void core::rearm_timer(time_point now) {
    if (closing_ == closing::done || forked()) {
        timer_.cancel();
        timer_at_ = time_point::max();
        return;
    }
    const time_point next = due(now);
    if (next == time_point::max() || next >= timer_at_) return;
    timer_.expires_after(std::max<clock::duration>(next - now, clock::duration::zero()));
    timer_.async_wait([self = shared_from_this()](std::error_code cancelled) {
        if (!cancelled) self->on_timer();
    });
    timer_at_ = next;
}

}  // namespace zkasio::detail
