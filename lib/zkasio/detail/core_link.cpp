#include <zkasio/detail/core.hpp>

#include <asio/post.hpp>

#include <algorithm>

namespace zkasio::detail {
namespace {

using namespace std::chrono_literals;

// Before connection attempt number `failed`: quickly through the list once, then ever more slowly.
boot_clock::duration pause_after(int failed, std::size_t servers, double random) {
    constexpr auto within_a_round = 5ms, first_round = 25ms, longest = 1000ms;
    const int rounds = failed / static_cast<int>(std::max<std::size_t>(servers, 1));
    const auto base = rounds == 0 ? within_a_round : std::min<std::chrono::milliseconds>(first_round * (1 << std::min(rounds - 1, 10)), longest);
    return std::chrono::duration_cast<boot_clock::duration>(base * (0.5 + random));
}

}  // namespace

void core::start() {
    shutdown_ = &asio::use_service<shutdown_service>(asio::query(strand_.get_inner_executor(), asio::execution::context));
    shutdown_->add(this, {[weak = weak_from_this()] {
                              if (const auto self = weak.lock()) self->let_go();
                          },
                          [weak = weak_from_this()] {
                              if (const auto self = weak.lock()) asio::post(self->strand_, [self] { self->left_behind(); });
                          }});
    publish(session_state::connecting, "connecting to " + options_.servers());
    last_turn_ = clock::now();
    resolve();
}

void core::resolve() {
    resolver_.resolve(shared_from_this(), servers_.hosts,
                      [this](std::vector<std::string> servers, std::string failure) {
                          resolved(std::move(servers), std::move(failure));
                      });
}

void core::resolved(std::vector<std::string> servers, std::string failure) {
    if (left_behind() || closing_ != closing::no || over()) return;
    if (!failure.empty()) {
        last_failure_ = failure;
        log("resolve " + failure);
    }
    const time_point now = clock::now();
    if (servers.empty()) {
        resolve_at_ = now + pause_after(++failed_attempts_, 1, random());
        return rearm_timer(now);
    }
    // Every client starts with another server; the library's own shuffle would reseed random() (fact 2).
    {
        const std::lock_guard lock(random_mutex_);
        std::shuffle(servers.begin(), servers.end(), random_);
    }
    auto sorted = servers;
    std::sort(sorted.begin(), sorted.end());
    if (backend_) {  // a later look-up: only news matter
        if (sorted != addresses_) backend_->set_servers(servers);
    } else {
        open_params p;
        p.servers = servers;
        p.chroot = servers_.chroot;
        p.session_timeout = options_.session_timeout();
        if (resume_) {
            p.session_id = resume_->id();
            p.session_password = resume_->password();
        }
        for (const auth_info& a : auth_) p.auth.push_back({a.scheme(), a.credential()});
        try {
            backend_ = factory_(*this);
            backend_->open(p);
        } catch (const std::exception& e) {
            backend_.reset();
            last_failure_ = e.what();
            log(last_failure_);
            resolve_at_ = now + pause_after(++failed_attempts_, 1, random());
            return rearm_timer(now);
        }
        link_ = link_state::disconnected;
        socket_->start(shared_from_this(), shutdown_->reactor(), [this](bool r, bool w) { on_ready(r, w); });
    }
    addresses_ = std::move(sorted);
    server_count_ = addresses_.size();
    drive();
}

// For connecting and for the answer to the handshake together. That opens a session, which is a write of the whole ensemble: when
// all servers take longer than this, they get more time with each round, up to what the library itself gives them.
core::duration core::connect_limit() const {
    const duration timeout = backend_ ? backend_->session_timeout() : options_.session_timeout();
    const auto servers = static_cast<int>(std::max<std::size_t>(server_count_, 1));
    const duration first = std::max<duration>(200ms, timeout / (3 * servers));
    return std::max(first, std::min(first * (1 << std::min(unanswered_handshakes_ / servers, 10)), timeout * 2 / 3));
}

// ------------------------------------------------------------------------------------------------ the turns

void core::begin_turn(time_point now) {
    // Only what the timer is late proves it: there may have been nothing to do before.
    const duration late = now - std::max(timer_at_, last_turn_);
    if (late > session_->lease.session_timeout() / 5 && link_ == link_state::connected) {
        log("the event loop did not run for " +
            std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(late).count()) + " ms");
    }
    last_turn_ = now;
    check_leases(now);
}

void core::on_ready(bool readable, bool writable) {
    if (left_behind() || !backend_) return;
    begin_turn(clock::now());
    if (closing_ == closing::goodbye) {
        switch (backend_->answer_to_goodbye()) {
            case goodbye_result::none_yet: return drive();
            case goodbye_result::session_over: return finish_close(close_result::confirmed);
            case goodbye_result::connection_lost: return finish_close(without_goodbye());
        }
    }
    more_to_read_ = backend_->process(readable, writable) == drain_result::more;
    if (writable && std::exchange(flush_when_writable_, false)) flush();
    drive();
}

void core::on_timer() {
    const time_point now = clock::now();
    if (left_behind()) return;
    begin_turn(now);
    timer_at_ = time_point::max();
    if (closing_ != closing::no && now >= close_deadline_) return continue_close();
    if (resolve_at_ <= now) {
        resolve_at_ = time_point::max();
        resolve();
    }
    expire_queue(now);
    read_what_has_come();
    if (backend_ && link_ != link_state::connected && has_socket_ && now >= attempt_deadline_) {
        if (backend_->handshake_sent()) ++unanswered_handshakes_;
        last_failure_ = backend_->attempt();
        backend_->abort_connection();  // fact 11
    }
    // Only a server can say that a session has expired, and nobody can be asked (fact 26).
    if (!session_over_ && link_ == link_state::disconnected && session_->session_id != 0 && now >= presumed_expiry()) {
        given_up_ = std::max(given_up_, session_->lease.session_timeout());
        session_over_ = errc::session_expired;
        session_over_reason_ = "presumed expired: no server within 4/3 of the session timeout";
    }
    heartbeat(now);
    watch_own_nodes(now);
    read_when_idle(now);
    if (link_ == link_state::connected && !again_.empty() && now >= again_not_before_) schedule_flush();
    drive();
}

// Fact 7: what has arrived counts, even if we look late; only then may the backend be asked what has timed out.
void core::read_what_has_come() {
    if (!backend_ || !has_socket_ || closing_ == closing::goodbye) return;
    backend_deadline_ = time_point::max();  // drive() will know
    if (backend_->process(true, false) == drain_result::more) more_to_read_ = true;
}

// After anything that may have changed what the backend waits for.
void core::drive() {
    if (left_behind()) return;
    const time_point now = clock::now();
    if (now >= backend_deadline_) read_what_has_come();
    if (session_over_) {
        const std::error_code code = std::exchange(session_over_, {});
        end_session(code, std::exchange(session_over_reason_, {}));
    }
    if (!backend_ || closing_ == closing::done) return rearm_timer(now);
    if (closing_ == closing::goodbye) {
        socket_->rearm_read();
        return rearm_timer(now);
    }
    if (std::exchange(more_to_read_, false))
        asio::post(strand_, [self = shared_from_this()] { self->on_ready(true, false); });

    if (has_socket_ && !backend_->has_socket()) attempt_failed(now, attempt_deadline_ == time_point::max());
    if (!has_socket_ && now < connect_not_before_) {
        socket_->close();
        backend_deadline_ = connect_not_before_;
        return rearm_timer(now);
    }
    const bool was_up = link_ == link_state::connected;
    const interest next = backend_->next_interest();
    if (session_over_) return drive();
    has_socket_ = backend_->has_socket();
    if (backend_->handshake_sent()) session_asked_for_ = true;
    if (link_ != link_state::connected && next.connection != attempt_connection_) {
        attempt_began_ = now;
        attempt_deadline_ = now + connect_limit();
    }
    attempt_connection_ = next.connection;
    if (link_ != link_state::connected && !has_socket_ && next.timeout <= 0ms) {
        attempt_failed(now, was_up);  // connect() itself failed, or nothing has come for too long
        backend_deadline_ = connect_not_before_;
    } else {
        backend_deadline_ = now + std::max<duration>(next.timeout, 1ms);
    }
    socket_->arm(next.descriptor, next.connection, next.read, next.write);
    rearm_timer(now);
}

void core::attempt_failed(time_point now, bool was_up) {
    attempt_deadline_ = time_point::max();
    has_socket_ = false;
    ++failed_attempts_;
    if (const std::string why = backend_->last_failure(); !why.empty()) last_failure_ = why;
    if (!was_up) log("cannot connect: " + last_failure_);
    connect_not_before_ = now + pause_after(failed_attempts_, server_count_, random());
    // A whole round without success: the names may have moved.
    const bool round_over = failed_attempts_ % static_cast<int>(server_count_) == 0;
    const bool has_names = servers_.hosts.size() != addresses_.size() ||
                           !std::all_of(servers_.hosts.begin(), servers_.hosts.end(), [&](const host_port& h) {
                               return std::binary_search(addresses_.begin(), addresses_.end(), numeric_server(h.host, h.port));
                           });
    if (round_over && has_names && resolve_at_ == time_point::max()) resolve_at_ = connect_not_before_;
}

std::string core::why_not_connected() const {
    // An attempt that has only just begun says less than the failure before it.
    const bool trying = backend_ && has_socket_ && link_ != link_state::connected;
    if (trying && (last_failure_.empty() || clock::now() - attempt_began_ > 100ms)) return backend_->attempt();
    if (last_failure_.empty() && !backend_) return "still looking for the address of " + server_names();
    return last_failure_;
}

void core::retire_backend() {
    socket_->close();
    backend_.reset();
    link_ = link_state::disconnected;
    has_socket_ = false;
    attempt_connection_ = 0;
    attempt_deadline_ = backend_deadline_ = time_point::max();
    connect_not_before_ = {};
    failed_attempts_ = unanswered_handshakes_ = 0;
}

// ------------------------------------------------------------------------------------------------- the timer

// One timer for everything. It is set anew only when something is due earlier than it would fire; when it fires too
// early, nothing is due yet and it is set again.
void core::rearm_timer(time_point now) {
    if (closing_ == closing::done || forked()) {
        timer_.cancel();
        timer_at_ = time_point::max();
        return;
    }
    time_point due = std::min({backend_deadline_, resolve_at_, close_deadline_, own_read_due()});
    if (link_ != link_state::connected) {
        due = std::min(due, attempt_deadline_);
        while (!expiring_.empty() && !operations_.contains(expiring_.front())) expiring_.pop_front();  // cancelled
        if (!expiring_.empty())
            due = std::min<time_point>(due, operations_.at(expiring_.front()).queued + options_.connection_timeout());
    } else if (!again_.empty() && again_not_before_ > now) {
        due = std::min(due, again_not_before_);
    }
    if (!session_->holds.empty()) {
        due = std::min(due, session_->lease.end() > now ? session_->lease.end() : now + 1s);
        if (link_ == link_state::connected && !session_->heartbeat_under_way)
            due = std::min(due, heartbeat_due(now));
        // The timer's clock stops while the machine is suspended, the lease's does not: look often enough.
        due = std::min(due, now + std::max<duration>(session_->lease.session_timeout() / 8, 50ms));
    }
    if (link_ != link_state::connected && session_->session_id != 0)
        due = std::min(due, presumed_expiry());
    if (due == time_point::max() || due >= timer_at_) return;

    timer_at_ = due;
    timer_.expires_after(std::max<duration>(due - now, duration::zero()));
    timer_.async_wait([self = shared_from_this()](std::error_code cancelled) {
        if (!cancelled) self->on_timer();
    });
}

}  // namespace zkasio::detail
