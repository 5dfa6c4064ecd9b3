#include <zkasio/detail/connection/link.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/connection/plain_channel.hpp>
#include <zkasio/detail/connection/sasl_channel.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <cassert>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace zkasio::detail {

using namespace std::chrono_literals;

namespace {

constexpr auto again_without_watch = 100ms;  // while the socket of a connection cannot be waited for
constexpr auto warned_again_after = 10s;

}  // namespace

link::link(owner& o, const strand_type& strand, const client_options& options, backend_factory factory,
           const logger& log)
    : owner_(o),
      strand_(strand),
      options_(options),
      factory_(std::move(factory)),
      log_(log),
      servers_(parse_server_list(options.servers(), "client options")),
      resolver_(strand),
      nearer_(strand, options.security() != nullptr, [this] { return owner_.wants_connection(); }),
      socket_(std::make_shared<socket_watch>(strand)) {}

// ---------------------------------------------------------------------------------------------------- servers

void link::start(reactor_mark reactor) {
    socket_->start(owner_.keep_alive(), std::move(reactor), [this](bool r, bool w) { owner_.on_ready(r, w); });
    if (!options_.sasl()) return;
    // Called on any thread, on which the client must not end: so what is posted does not keep it alive.
    auto wake = [this, on = strand_, weak = std::weak_ptr<void>(owner_.keep_alive())] {
        asio::post(on, [this, weak] {
            if (const auto alive = weak.lock()) owner_.on_ready(true, false);
        });
    };
    sasl_ = std::make_shared<sasl_steps>(options_.sasl(), strand_, std::move(wake));
}

void link::resolve() {
    std::vector<host_port> hosts = servers_.hosts;
    for (const host_port& h : servers_.last)
        if (std::find(hosts.begin(), hosts.end(), h) == hosts.end()) hosts.push_back(h);
    resolver_.resolve(owner_.keep_alive(), hosts, [this](std::vector<server_address> servers, std::string failure) {
        if (!options_.prefer()) return resolved(std::move(servers), failure);
        // A user's function ranks them, which may use this client: in no turn, and for the newest list only.
        asio::post(strand_, [this, alive = owner_.keep_alive(), n = ++lists_, servers = std::move(servers),
                             failure = std::move(failure)]() mutable {
            if (n != lists_ || !owner_.wants_connection()) return;
            for (server_address& s : servers) s.rank = rank_of(s);
            if (n == lists_) resolved(std::move(servers), failure);
        });
    });
}

int link::rank_of(const server_address& s) const {
    int rank = server_address::last_rank;
    log_.call([&] { rank = options_.prefer()(s.host, s.address); });
    return rank;
}

void link::stop_resolving() {
    resolver_.cancel();
    forget_nearer();
    resolve_at_ = time_point::max();
}

void link::set_servers(server_list servers) {
    servers_.hosts = std::move(servers.hosts);
    servers_.last = std::move(servers.last);
    failed_attempts_ = 0;
    failures_of_round_.clear();
    pacing_.reset();
    connect_not_before_ = {};  // the pause was that of the former servers
    const std::lock_guard lock(names_mutex_);
    servers_.text = std::move(servers.text);
}

std::string link::server_names() const {
    const std::lock_guard lock(names_mutex_);
    return servers_.text + servers_.chroot;
}

namespace {

// A server with several names has the lowest of their ranks.
void unite_ranks(std::vector<server_address>& servers) {
    std::map<std::string, int> ranks;
    for (const server_address& s : servers) {
        int& of = ranks.try_emplace(endpoint_of(s), s.rank).first->second;
        of = std::min(of, s.rank);
    }
    for (server_address& s : servers) s.rank = ranks[endpoint_of(s)];
}

// Without encryption no name is verified, and without SASL none is a principal's: then the first name of each endpoint
// is enough.
void keep_first_names(std::vector<server_address>& servers) {
    std::set<std::string> known;
    std::erase_if(servers, [&](const server_address& s) { return !known.insert(endpoint_of(s)).second; });
}

}  // namespace

void link::resolved(std::vector<server_address> servers, const std::string& failure) {
    if (!owner_.wants_connection()) return;
    const auto is_last = [this](const server_address& s) {
        const host_port h{s.host, s.port};
        return std::find(servers_.hosts.begin(), servers_.hosts.end(), h) == servers_.hosts.end();
    };
    for (server_address& s : servers)
        if (!servers_.last.empty() && is_last(s)) s.rank = server_address::last_rank;
    unite_ranks(servers);
    if (!options_.security() && !options_.sasl()) keep_first_names(servers);
    if (!failure.empty()) {
        last_failure_ = failure;
        log_.warn("resolve " + failure, {{"reason", failure}});
    }
    if (servers.empty()) {
        pacing_.attempt_failed();
        resolve_at_ = clock::now() + pacing_.look_up_pause(jitter());
        return owner_.drive();
    }
    // Every client starts with another server; the library's own shuffle would reseed random() (fact 2).
    std::shuffle(servers.begin(), servers.end(), jitter_engine());
    std::sort(servers.begin(), servers.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    std::vector<std::string> endpoints;
    for (const server_address& s : servers) endpoints.push_back(to_string(s) + ' ' + std::to_string(s.rank));
    std::sort(endpoints.begin(), endpoints.end());
    ranked_ = servers;
    if (!backend_) {
        if (!open(std::move(servers))) return owner_.drive();
    } else if (former_at_ >= former_stage::goodbye) {
        return;  // the session that follows gets the new list
    } else if (endpoints != endpoints_) {  // a later look-up: only changes matter
        backend_->set_servers(servers);
    }
    if (endpoints != endpoints_) look_for_nearer();
    endpoints_ = std::move(endpoints);
    pacing_.set_servers(endpoints_.size());
    owner_.drive();
}

void link::look_for_nearer() {
    forget_nearer();
    if (!connected() || options_.reads_only()) return;
    std::vector<server_address> nearer = ranked_;
    std::erase_if(nearer, [most = backend_->current_rank()](const server_address& s) { return s.rank >= most; });
    const auto timeout = backend_->session_timeout(), asked = options_.looks_every();
    const auto first = asked > asked.zero() ? asked : 6 * timeout;
    const nearer_server::pace pace{first, first / 2, timeout / 2};
    nearer_.look(owner_.keep_alive(), pace, std::move(nearer), [this, timeout](const server_address& up) {
        nearer_up_ = up;
        nearer_until_ = clock::now() + timeout;
        owner_.drive();
    });
}

void link::forget_nearer() noexcept {
    nearer_.stop();
    nearer_up_.reset();
    nearer_until_ = time_point::max();
}

void link::move_to_nearer() {
    const server_address to = *nearer_up_;
    left_rank_ = backend_->current_rank();
    nearer_.tried();
    backend_->move_to(to);
}

bool link::open(std::vector<server_address> servers) {
    open_params p = owner_.to_open();
    if (former_) {
        p.session_id = former_->id();
        p.session_password = former_->password();
    }
    p.servers = std::move(servers);
    p.chroot = servers_.chroot;
    p.session_timeout = options_.session_timeout();
    p.secured = options_.security() || options_.sasl();
    try {
        backend_ = factory_(owner_);
        backend_->open(p);
    } catch (const std::exception& e) {
        backend_.reset();
        last_failure_ = e.what();
        log_.error(last_failure_);
        pacing_.attempt_failed();
        resolve_at_ = clock::now() + pacing_.look_up_pause(jitter());
        return false;
    }
    state_ = link_state::disconnected;
    former_at_ = former_ ? former_stage::resuming : former_stage::none;
    session_ends_ = p.session_id == 0 ? time_point() : clock::now() + p.session_timeout / 3 * 4;
    return true;
}

// ------------------------------------------------------------------------------------------------------ state

void link::changed(link_state s) {
    assert(backend_);
    state_ = s;
    forget_nearer();
    if (s == link_state::connected) {
        pacing_.connected();
        of_use_ = false;
        connected_at_ = clock::now();
        failed_attempts_ = 0;
        failures_of_round_.clear();
        warned_of_.clear();
        attempt_deadline_ = time_point::max();
        session_asked_for_ = false;
        last_failure_.clear();
        look_for_nearer();
    } else if (s == link_state::disconnected) {
        last_failure_ = backend_->last_failure();
        connect_not_before_ = {};
        connection_over();
    } else {
        pacing_.was_useless();  // the handshake was answered with a refusal
    }
}

void link::connection_over() {
    session_ends_ = clock::now() + backend_->session_timeout() / 3 * 4;
    if (clock::now() - connected_at_ >= connection_pacing::longest) {
        pacing_.reset();
        backend_->begin_round();
        if (backend_->current_rank() < left_rank_) nearer_.taken();
    } else if (!of_use_) {
        pacing_.was_useless();
    }
}

std::string link::why_not_connected() const {
    if (former_at_ == former_stage::resumed || former_at_ == former_stage::goodbye)
        return backend_->current_server() + ": the session that was given up is being ended";
    // An attempt that has only just begun says less than the failure before it.
    const bool trying = backend_ && has_socket_ && !connected();
    if (trying && (last_failure_.empty() || clock::now() - attempt_began_ > 100ms)) return backend_->attempt();
    if (last_failure_.empty() && !backend_)
        return "still looking for the address of " + servers_.text + servers_.chroot;
    return last_failure_;
}

// ------------------------------------------------------------------------------------------------------ turns

// prepare() may call a user's function, which may use this client at once: connect to other servers, for example.
void link::secure() {
    if (!backend_ || !backend_->is_to_be_secured()) return;
    const std::uint64_t connection = attempt_connection_;
    channel_maker make = [](int descriptor, const server_address&) {
        return std::make_unique<plain_channel>(descriptor);
    };
    const auto refuse = [&make](std::string why) {
        make = [why = std::move(why)](int, const server_address&) -> std::unique_ptr<secure_channel> {
            throw std::runtime_error(why);
        };
    };
    try {
        if (options_.security()) make = options_.security()->prepare();
    } catch (const std::exception& e) {
        refuse(e.what());
    } catch (...) {
        refuse("TLS: the function that makes a context has thrown what is no std::exception");
    }
    if (sasl_)
        make = [below = std::move(make), steps = sasl_](int descriptor, const server_address& to) {
            return std::make_unique<sasl_channel>(below(descriptor, to), steps,
                                                  sasl_server(to.host, to.address, to.port));
        };
    if (!backend_ || connection != attempt_connection_) return;
    if (sasl_) attempt_deadline_ = clock::now() + pacing_.login_limit(backend_->session_timeout());
    backend_->secure(std::move(make));
}

void link::process(bool readable, bool writable) {
    if (former_at_ >= former_stage::goodbye) return read_answer_to_goodbye();
    more_to_read_ = backend_->process(readable, writable) == drain_result::more;
}

void link::read_what_has_come() {
    if (!backend_ || !has_socket_ || former_at_ >= former_stage::goodbye) return;
    backend_deadline_ = time_point::max();  // pump() sets the next one
    if (backend_->process(true, false) == drain_result::more) more_to_read_ = true;
}

void link::on_time(time_point now) {
    if (former_deadline_ <= now) {
        read_answer_to_goodbye();  // it may have come, and wait behind the timer
        former_at_ = former_stage::gone;
    }
    if (nearer_until_ <= now) look_for_nearer();
    if (unwatched_ != 0 && connected() && backend_deadline_ <= now) process(false, true);  // it may be writable again
    if (resolve_at_ <= now) {
        resolve_at_ = time_point::max();
        resolve();
    }
}

void link::give_up_attempt(time_point now) {
    if (!backend_ || connected() || !has_socket_ || now < attempt_deadline_) return;
    if (unwatched_ == 0 && backend_->accepted()) pacing_.handshake_unanswered();
    last_failure_ = backend_->attempt();
    ++failed_attempts_;
    backend_->abort_connection();  // fact 11
}

void link::pump(time_point now) {
    if (pump_former(now)) return;
    if (more_to_read_) {
        asio::post(strand_, [this, alive = owner_.keep_alive()] { owner_.on_ready(true, false); });
        more_to_read_ = false;
    }
    if (has_socket_ && !backend_->has_socket()) attempt_failed(now, attempt_deadline_ == time_point::max());
    if (!has_socket_ && !backend_->has_socket() && now < connect_not_before_) {
        socket_->close();
        backend_deadline_ = connect_not_before_;
        return;
    }
    const bool was_up = connected();
    const interest next = backend_->next_interest();
    if (former_at_ == former_stage::gone) return void(pump_former(now));
    if (is_final()) return;  // the session is over: nothing is to be waited for
    has_socket_ = backend_->has_socket();
    if (backend_->handshake_sent()) session_asked_for_ = true;
    if (!connected() && next.connection != attempt_connection_) {
        attempt_began_ = now;
        attempt_deadline_ = now + pacing_.attempt_limit(backend_->session_timeout());
    }
    attempt_connection_ = next.connection;
    if (!connected() && !has_socket_ && next.timeout <= 0ms) {
        attempt_failed(now, was_up);  // connect() itself failed, or nothing has come for too long
        backend_deadline_ = connect_not_before_;
    } else {
        backend_deadline_ = now + std::max<duration>(next.timeout, 1ms);
    }
    unwatched_ = socket_->arm(next.descriptor, next.connection, next.read, next.write);
    if (unwatched_ == 0) return;
    if (connected())  // and then it is writing that cannot be waited for
        backend_deadline_ = std::min(backend_deadline_, now + again_without_watch);
    else
        attempt_deadline_ = now;
}

void link::attempt_failed(time_point now, bool was_up) {
    // The end of a connection that was up is no failed attempt; an attempt that was given up is counted already.
    if (!was_up && attempt_deadline_ > now) ++failed_attempts_;
    attempt_deadline_ = time_point::max();
    has_socket_ = false;
    pacing_.attempt_failed();
    if (const std::string why = backend_->last_failure(); !why.empty()) last_failure_ = why;
    if (unwatched_ != 0)
        last_failure_ = backend_->current_server() + ": cannot wait for the socket: " +
                        std::generic_category().message(std::exchange(unwatched_, 0));
    if (!was_up) note_failure(now);
    connect_not_before_ = now + pause_after_failure(now);
    // A whole round without success: the addresses of the names may have changed.
    const bool has_names = std::any_of(servers_.hosts.begin(), servers_.hosts.end(),
                                       [](const host_port& h) { return !is_numeric(h.host); });
    if (pacing_.round_over() && has_names && resolve_at_ == time_point::max() && owner_.wants_connection())
        resolve_at_ = connect_not_before_;
}

// A session that lives is not lost to the pauses behind logins that fail, once the reason is gone.
link::duration link::pause_after_failure(time_point now) noexcept {
    if (!backend_->login_failed()) return pacing_.pause(jitter());
    pacing_.login_failed();
    const duration pause = pacing_.pause_after_login(jitter());
    return now < session_ends_ ? std::min<duration>(pause, backend_->session_timeout() / 4) : pause;
}

// One warning for a round through the list, with all that was met: a server that is down while the others serve is
// worth no more than a line of information, and neither are the same failures once more within a few seconds.
void link::note_failure(time_point now) {
    if (failures_of_round_.find(last_failure_) == std::string::npos)
        failures_of_round_ += (failures_of_round_.empty() ? "" : "; ") + last_failure_;
    const bool round_over = failed_attempts_ % std::max<std::size_t>(endpoints_.size(), 1) == 0;
    const std::string why = round_over ? std::exchange(failures_of_round_, {}) : last_failure_;
    const bool warns = round_over && (why != warned_of_ || now >= warned_at_ + warned_again_after);
    log_.log(warns ? log_level::warning : log_level::info, "cannot connect: " + why, {{"reason", why}});
    if (!warns) return;
    warned_of_ = why;
    warned_at_ = now;
}

link::time_point link::due() const noexcept {
    const time_point attempt = connected() ? time_point::max() : attempt_deadline_;
    return std::min({backend_deadline_, resolve_at_, nearer_until_, attempt, former_deadline_});
}

void link::rearm_goodbye() {
    socket_->rearm_read();
    const interest i = backend_->goodbye_interest();
    if (i.write) socket_->arm(i.descriptor, i.connection, i.read, i.write);
}

void link::retire() {
    forget_nearer();
    if (backend_ && backend_->login_refused()) refused_login_ = backend_->last_failure();
    socket_->close();
    backend_.reset();
    state_ = link_state::disconnected;
    has_socket_ = false;
    session_asked_for_ = false;
    attempt_connection_ = 0;
    attempt_deadline_ = backend_deadline_ = former_deadline_ = time_point::max();
    former_at_ = former_stage::none;
    connect_not_before_ = clock::now() + pacing_.pause_of_next_session(jitter());
}

// -------------------------------------------------------------------------------------- the end of a former session

void link::end_first(session_credentials former) { former_ = std::move(former); }

void link::end_over_next_connection(session_credentials s) {
    retire();
    end_first(std::move(s));
    if (!open(ranked_)) former_.reset();
}

bool link::takes_for_former(link_state s) noexcept {
    if (former_at_ == former_stage::none) return false;
    switch (s) {
        case link_state::connected:
            former_at_ = former_stage::resumed;
            attempt_deadline_ = time_point::max();
            of_use_ = false;
            connected_at_ = clock::now();
            break;
        case link_state::disconnected:
            if (former_at_ == former_stage::gone) break;
            former_at_ = former_stage::resuming;
            former_deadline_ = time_point::max();
            last_failure_ = backend_->last_failure();
            connection_over();
            break;
        case link_state::expired:
            pacing_.was_useless();
            // Other servers forget a session with its connection, and its nodes stand until it times out.
            if (backend_->is_zookeeper()) owner_.former_session_over();
            former_at_ = former_stage::gone;
            break;
        case link_state::auth_failed: former_at_ = former_stage::gone; break;
    }
    return true;
}

void link::read_answer_to_goodbye() {
    if (former_at_ != former_stage::goodbye) return;
    switch (backend_->answer_to_goodbye()) {
        case goodbye_result::none_yet: return;
        case goodbye_result::session_over: owner_.former_session_over(); break;
        case goodbye_result::connection_lost: break;  // it may live until it times out
    }
    former_at_ = former_stage::gone;
}

// True: this turn is over for the link.
bool link::pump_former(time_point now) {
    if (former_at_ == former_stage::resumed) {
        // A session that is left alone for its timeout ends without a goodbye.
        const auto patience = std::min<duration>(options_.close_timeout(), backend_->session_timeout());
        if (former_deadline_ == time_point::max()) former_deadline_ = now + patience;
        if (!backend_->send_goodbye()) return false;  // a credential is still to be written
        former_at_ = former_stage::goodbye;
    }
    if (former_at_ == former_stage::goodbye) {
        backend_deadline_ = time_point::max();
        rearm_goodbye();
        return true;
    }
    if (former_at_ != former_stage::gone) return false;
    former_.reset();
    retire();
    if (owner_.wants_connection()) resolve();
    return true;
}

}  // namespace zkasio::detail
