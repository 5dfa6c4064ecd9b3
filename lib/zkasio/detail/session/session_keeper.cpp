#include <zkasio/detail/session/session_keeper.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace zkasio::detail {
namespace {

std::string in_ms(client_options::duration d) { return std::to_string(d.count()) + " ms"; }

}  // namespace

session_keeper::session_keeper(const client_options& options, link& l, event_feed& events, const logger& log,
                               telemetry& t)
    : options_(options), link_(l), events_(events), log_(log), telemetry_(t) {
    const session_credentials* c = options.resume();
    if (!c) return;
    if (options.reads_only())
        throw error(errc::invalid_argument, "client options", {},
                    "no read-only server knows the session that is to be resumed: read_only() without resume()");
    if (c->id() == 0 || c->password().size() != 16)
        throw error(errc::invalid_argument, "client options", {},
                    "resume() needs a session id and its password of 16 bytes");
    resume_ = *c;
    record_->resumed = true;
}

session_record_ptr session_keeper::shared() const {
    const std::lock_guard lock(record_mutex_);
    return record_;
}

bool session_keeper::is_final() const noexcept {
    return state() == session_state::expired || state() == session_state::auth_failed;
}

open_params session_keeper::to_open(const auth_list& auth) const {
    open_params p;
    p.read_only = options_.reads_only();
    if (resume_) {
        p.session_id = resume_->id();
        p.session_password = resume_->password();
    }
    p.auth = auth.requests();
    return p;
}

session_credentials session_keeper::credentials() const {
    if (!link_.is_open() || link_.is_of_former()) return {0, std::string()};
    return {link_.backend().session_id(), link_.backend().session_password()};
}

session_credentials session_keeper::share_credentials() {
    session_credentials c = credentials();
    if (c.id() != 0) record_->is_shared = true;
    return c;
}

// -------------------------------------------------------------------------------------------- what the link tells

void session_keeper::connected(time_point now) {
    connected_since_ = now;
    resume_.reset();
    const backend& to = link_.backend();
    if (record_->session_id == 0) {
        telemetry_.counters.sessions.add();
        began_ = now;
    }
    record_->session_id = to.session_id();
    const auto granted = to.session_timeout();
    record_->timeout_ms = granted.count();
    // The handshake was sent after the attempt began, and it reached the leader.
    record_->lease.connected(link_.attempt_began(), granted,
                             half_tick(options_.tick(), options_.session_timeout(), granted),
                             static_cast<int>(options_.lease_renewal()));
    check_tick(granted);
}

void session_keeper::publish_connected() {
    const backend& to = link_.backend();
    publish(session_state::connected, "session " + session_id_text(record_->session_id) + " on " + to.current_server() +
                                          ", timeout " + in_ms(to.session_timeout()));
}

// Logs client_options::tick() if the granted timeout contradicts it: the tick is wrong, or the servers are set up in an
// unusual way. Leases are right nevertheless.
void session_keeper::check_tick(client_options::duration granted) const {
    const auto tick = options_.tick();
    if (tick == client_options::duration::zero()) return;
    if (granted < 2 * tick)
        log_.warn("tick: the session timeout of " + in_ms(granted) + " is below two ticks of " + in_ms(tick) +
                  "; leases are short");
    else if (granted > options_.session_timeout() && granted > 2 * tick)
        log_.warn("tick: " + in_ms(tick) + " is not used, the servers' least session timeout of " + in_ms(granted) +
                  " speaks of longer ticks");
}

void session_keeper::disconnected(time_point now) {
    disconnected_since_ = now;
    forget_given_up(now);
    const std::string& why = link_.last_failure();
    publish(session_state::suspended, why.empty() ? "connection lost" : "connection lost: " + why);
    // No other server knows the session, and this one closes its connections when it has a quorum.
    if (options_.reads_only())
        ending_ = {errc::session_expired, "a session with a read-only server ends with its connection"};
}

void session_keeper::expired() {
    pace_next();
    if (resume_) record_->session_id = resume_->id();  // refused: the session that was asked for
    std::string why = "session " + session_id_text(record_->session_id) + " has expired";
    if (const backend& from = link_.backend(); !from.is_zookeeper()) {
        only_former_ = false;
        given_up_ = std::max<duration>(given_up_, from.session_timeout());  // its nodes stand until then
        why += ": " + from.current_server() + " is not a server of ZooKeeper's own, and gives no session back" +
               (resume_ ? ": there, resume() and hand_over() cannot work" : "");
    }
    ending_ = {errc::session_expired, std::move(why)};
}

void session_keeper::refused(const auth_list& auth) {
    pace_next();
    only_former_ = false;
    given_up_ = std::max(given_up_, record_->lease.session_timeout());  // servers hang up, and do not end it
    if (link_.backend().login_refused()) {
        given_up_ = std::max<duration>(given_up_, link_.backend().session_timeout());  // opened for the login
        ending_ = {zk_errc::auth_failed, "all servers have refused the login: " + link_.backend().last_failure()};
        return;
    }
    const std::string schemes = auth.schemes();
    ending_ = {zk_errc::auth_failed,
               "a server has refused a credential" + (schemes.empty() ? "" : ", of add_auth() or of " + schemes)};
}

session_keeper::duration session_keeper::until_former_is_over(time_point now) const noexcept {
    const duration lease = record_->lease.session_timeout();
    return link_.connected() ? std::max(duration::zero(), connected_since_ + lease - now) : lease;
}

session_keeper::time_point session_keeper::presumed_expiry() const noexcept {
    if (link_.connected() || link_.has_former() || record_->session_id == 0) return time_point::max();
    return over_by(disconnected_since_);
}

session_keeper::time_point session_keeper::over_by(time_point now) const noexcept {
    return (link_.connected() ? now : disconnected_since_) + record_->lease.session_timeout() / 3 * 4;
}

void session_keeper::presume_expired(time_point now) {
    if (ending_ || link_.state() != link_state::disconnected || now < presumed_expiry()) return;
    pace_next();
    only_former_ = given_up_ == duration::zero() && !record_->is_shared;
    given_up_ = std::max(given_up_, record_->lease.session_timeout());
    if (!record_->is_shared) former_ = credentials();
    ending_ = {errc::session_expired, "presumed expired: no server within 4/3 of the session timeout"};
}

// ------------------------------------------------------------------------------------------------- the end of one

session_keeper::ending session_keeper::take_ending() {
    assert(ending_);
    ending e = std::move(*ending_);
    ending_.reset();
    return e;
}

// Before anybody hears of the end of a session: whoever does asks for until_usable().
void session_keeper::pace_next() noexcept {
    if (began_ == time_point::max()) return;  // there was none
    const time_point now = clock::now();
    const time_point usable_at{duration(usable_at_.load())};  // before that, the session was idle
    if (now - std::max(std::exchange(began_, time_point::max()), usable_at) >= record_->lease.session_timeout()) {
        short_sessions_ = 0;
        return;
    }
    using std::chrono::milliseconds;
    constexpr milliseconds longest = std::chrono::seconds(10);
    constexpr int enough_doublings = 20;
    const milliseconds first = options_.retry().pause(0, 0.5);  // without its random part
    const milliseconds doubled = first * (1 << std::min(short_sessions_, enough_doublings));
    short_sessions_ = std::min(short_sessions_ + 1, enough_doublings);
    const auto pause = std::min(doubled, std::max(first, longest)) * (0.5 + jitter());
    usable_at_ = (now + std::chrono::duration_cast<duration>(pause)).time_since_epoch().count();
}

std::chrono::milliseconds session_keeper::until_usable() const noexcept {
    const time_point at{duration(usable_at_.load())};
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(duration::zero(), at - clock::now()));
}

session_record_ptr session_keeper::renew() {
    record_->over.store(true, std::memory_order_release);
    resume_.reset();
    auto next = std::make_shared<session_record>();
    const std::lock_guard lock(record_mutex_);
    return std::exchange(record_, std::move(next));
}

void session_keeper::publish(session_state s, std::string reason, std::int64_t session_id) {
    state_.store(s, std::memory_order_release);
    const bool good = s == session_state::connecting || s == session_state::connected || s == session_state::closed;
    std::vector<log_field> fields;
    fields.push_back({"state", std::string(to_string(s))});
    fields.push_back({"session", session_id_text(session_id)});
    fields.push_back({"reason", reason});
    log_.log(good ? log_level::info : log_level::warning, std::string(to_string(s)) + ": " + reason, fields);
    const session_event event{s, session_id, std::move(reason)};
    telemetry_.happened(event);
    events_.publish(event);
}

// ------------------------------------------------------------------------------------------------------- closing

close_result session_keeper::without_goodbye() const noexcept {
    const bool none = record_->session_id == 0 && !link_.session_asked_for() && !resume_;
    return none ? close_result::confirmed : close_result::session_left_to_expire;
}

// A server that loses its leader drops all its connections. So a connection that has lasted for 2 * given_up_ shows
// that there was one leader all the time, which has ended every session that no client came back to.
void session_keeper::forget_given_up(time_point now) {
    if (now - connected_since_ > 2 * given_up_) given_up_ = {};
}

void session_keeper::former_over() noexcept {
    log_.info("the session that was given up has ended");
    if (only_former_) given_up_ = {};
}

bool session_keeper::left_one_behind() {
    if (link_.connected()) forget_given_up(clock::now());
    return given_up_ != duration::zero();
}

}  // namespace zkasio::detail
