// The part of c_backend that looks after the library's connection: its socket, the handshake, and how it ends.

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/connection/c_backend.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace zkasio::detail {
namespace {

constexpr int handshake_bytes = 40;  // of the shortest handshake answer (without the read-only flag)
constexpr int longest_handshake_bytes = 41;
// The answer of a read-only server that opens no sessions: the header of a reply, with zk_errc::not_read_only.
constexpr int refusal_bytes = 20;

// No other request has this xid: the library's own xids count up from the time of day, and the protocol has reserved
// some down to -9.
constexpr std::int32_t goodbye_xid = -100;
constexpr std::int32_t credential_xid = -4;
constexpr std::size_t empty_answer_bytes = 20;  // length, xid, zxid, error: all that a server answers to either

std::int32_t int_at(const void* bytes, std::size_t at) {
    std::uint32_t v = 0;
    std::memcpy(&v, static_cast<const char*>(bytes) + at, sizeof v);
    return static_cast<std::int32_t>(ntohl(v));
}

// Reads all that has come, keeps the last bytes, as many as such an answer has. The result of the last read.
ssize_t read_last_bytes(int fd, std::string& last) {
    std::array<char, 4096> scratch;
    ssize_t n = 0;
    while ((n = ::recv(fd, scratch.data(), scratch.size(), MSG_DONTWAIT)) > 0) {
        last.append(scratch.data(), static_cast<std::size_t>(n));
        if (last.size() > empty_answer_bytes) last.erase(0, last.size() - empty_answer_bytes);
    }
    return n;
}

bool is_empty_answer(const std::string& bytes, std::int32_t xid, int code) {
    return bytes.size() == empty_answer_bytes && int_at(bytes.data(), 0) == empty_answer_bytes - 4 &&
           int_at(bytes.data(), 4) == xid && int_at(bytes.data(), 16) == code;
}

}  // namespace

int c_backend::library_interest(int& fd, int& events, timeval& tv) {
    fd = -1;  // fact 5: outputs are untouched, or stale, unless the call succeeds
    events = 0;
    tv = {0, 0};
    const library_call guard(*this);
    const int rc = zookeeper_interest(zh_, &fd, &events, &tv);
    if (rc != ZOK) fd = -1;
    return rc;
}

int c_backend::library_process(int events) {
    const library_call guard(*this);
    return zookeeper_process(zh_, events);
}

interest c_backend::next_interest() {
    if (!usable()) return {};
    cure_poison();  // the library is about to connect again
    if (!has_socket()) {
        if (tunnel_) adopt_descriptor(-1);
        login_failed_ = false;
    }
    if (!unsent_.empty() && connected() && !finish_own_frame()) return wait_for_own_frame();
    take_next_server();
    const bool was_connected = connected();
    int fd = -1, events = 0;
    timeval tv{};
    int rc = library_interest(fd, events, tv);
    // After a round through the list the library would add T/60 to the pause that was made already: ask again.
    if (rc == ZOK && fd < 0) rc = library_interest(fd, events, tv);
    if (rc != ZOK && connected()) {
        // Fact 6: after a ping that could not be sent, the library calls a dead connection alive. Reading finds out;
        // but the library must not read our answers. It has none of its own to come, or would have sent no ping.
        if (looks_at_frames()) {
            fail(server_ + ": closed by the server");
            fail_connection();
        }
        while (connected() && library_process(ZOOKEEPER_READ) == ZOK) {
        }
    }
    if (!was_connected || !connected() || fd != fd_) adopt_descriptor(rc == ZOK ? fd : -1);
    if (secured_ && fd_ >= 0 && !tunnel_) {  // dig_tunnel() has failed
        fail_connection();
        tv = {0, 0};
    }
    wants_write_ = fd_ >= 0 && (events & ZOOKEEPER_WRITE) != 0;
    ask_for_stats();
    send_through_tunnel();  // the library may have sent a ping
    report();
    // The listener may have changed the connection.
    interest result = network_interest();
    result.timeout = std::chrono::milliseconds(tv.tv_sec * 1000 + tv.tv_usec / 1000);
    wake_for_tunnel(result);
    return result;
}

void c_backend::wake_for_tunnel(interest& next) const {
    if (!tunnel_ || !tunnel_->channel()) return;
    const auto deadline = tunnel_->channel()->deadline();
    if (deadline == boot_clock::time_point::max()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_clock::now());
    next.timeout = std::min(next.timeout, std::max(left, std::chrono::milliseconds::zero()));
}

interest c_backend::network_interest() const {
    interest i;
    i.connection = connection_;
    i.descriptor = tunnel_ ? tunnel_->descriptor() : fd_;
    i.read = fd_ >= 0;
    // A tunnel that is not open takes nothing from the library. An open tunnel itself waits when the network is full.
    const bool wants_write = wants_write_ || own_wants_write_ || !unsent_.empty();
    i.write = fd_ >= 0 && wants_write && (!tunnel_ || tunnel_->at() == tunnel::stage::open);
    if (tunnel_ && tunnel_->wants_write()) i.write = true;
    return i;
}

void c_backend::adopt_descriptor(int fd) {
    struct ::stat info {};
    if (fd >= 0 && ::fstat(fd, &info) != 0) fd = -1;
    if (fd == fd_ && (fd < 0 || info.st_ino == inode_)) return;
    refused_ = refused_ || ends_with_refusal();
    fd_ = fd;
    inode_ = info.st_ino;
    corked_ = false;
    ++connection_;
    lose_own();
    look_at_login();
    tunnel_.reset();
    if (fd < 0) return;
    left_by_us_ = is_refused_request_ = false;
    answered_here_.clear();
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // fact 4
    if (const library_call guard(*this); const char* server = zoo_get_current_server(zh_)) {
        tried_ = endpoint_ = with_brackets(server);
        server_ = named(endpoint_);
    }
    if (secured_ && !dig_tunnel()) return;
    // Wake up only for a whole handshake answer, so that the answer can be checked before the library believes it.
    const int least = least_handshake();
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    watch_for_refusal();
}

// A server hangs up behind the refusal of a credential. If the library sends something before it has read the refusal,
// and the kernel knows that the peer is gone, it closes the socket, reads nothing more, and presents the credential on
// the next connection, for ever. So the socket stays open until its last bytes have been looked at, unless no
// descriptor is left.
void c_backend::watch_for_refusal() {
    if (has_credentials_ && fd_ >= 0 && unread_.get() < 0)
        unread_ = owned_descriptor(::fcntl(fd_, F_DUPFD_CLOEXEC, 0));
}

bool c_backend::ends_with_refusal() {
    const owned_descriptor ended = std::exchange(unread_, owned_descriptor());
    if (ended.get() < 0 || made_here_.forked()) return false;
    std::string last;
    read_last_bytes(ended.get(), last);
    return is_empty_answer(last, credential_xid, ZAUTHFAILED);
}

int c_backend::least_handshake() const noexcept { return read_only_ ? refusal_bytes : handshake_bytes; }

// The library has only begun to connect: it writes when it is told that the socket is writable, see process().
bool c_backend::dig_tunnel() {
    const server_address* const server = server_at(endpoint_);
    if (zoo_state(zh_) != ZOO_CONNECTING_STATE || !server) {
        fail(server_ + ": the connection stood before it could be secured");
        return false;
    }
    try {
        tunnel_ = tunnel::behind(fd_, *server);
    } catch (const std::exception& e) {
        fail(server_ + ": " + e.what());
        return false;
    }
    struct ::stat info {};
    if (::fstat(fd_, &info) == 0) inode_ = info.st_ino;
    return true;
}

// One server may be set up differently from the others, or know a client under one of its names only. When each has
// refused the client under each name, no other attempt will be of use: twice, since a server of ZooKeeper that checks
// the passwords of two users at the same moment may compare one with the other (its callback handler is shared).
void c_backend::look_at_login() {
    if (!tunnel_ || !tunnel_->channel() || login_failed_) return;
    const secure_channel::failure_kind kind = tunnel_->channel()->kind_of_failure();
    if (kind == secure_channel::failure_kind::connection) return;
    login_failed_ = true;
    ++refused_names_[endpoint_];
    if (kind != secure_channel::failure_kind::refusal) return;
    constexpr int enough = 2;
    ++refusing_[server_];
    const auto refuses = [this](const server_address& s) {
        const auto it = refusing_.find(to_string(s));
        return it != refusing_.end() && it->second >= enough;
    };
    if (std::all_of(servers_.begin(), servers_.end(), refuses)) refused_ = login_refused_ = true;
}

// Receives first. If the tunnel fails before it is open, this ends the connection: the library would not notice.
bool c_backend::tunnel_is_open() {
    tunnel_->receive();
    if (tunnel_->at() == tunnel::stage::open) return true;
    if (!tunnel_->failure().empty()) {
        look_at_login();
        if (!login_failed_) ++refused_names_[endpoint_];
        fail(server_ + ": " + tunnel_->failure());
        fail_connection();
    }
    return false;
}

void c_backend::send_through_tunnel() {
    if (tunnel_ && usable()) tunnel_->send();
}

// Fact 31: the library takes any 41 bytes for a handshake answer, and a wrong session id in it for an expiry.
c_backend::handshake c_backend::look_at_handshake() {
    std::array<unsigned char, longest_handshake_bytes> answer{};
    const ssize_t n = ::recv(fd_, answer.data(), answer.size(), MSG_PEEK | MSG_DONTWAIT);
    constexpr unsigned char tls_alert = 0x15, tls_major = 3;
    if (n >= 2 && answer[0] == tls_alert && answer[1] == tls_major) return handshake::tls;
    const auto field = [&](std::size_t at) { return int_at(answer.data(), at); };
    if (read_only_ && n == refusal_bytes && field(0) == refusal_bytes - 4 && field(16) == ZNOTREADONLY)
        return handshake::opens_no_sessions;
    if (n > 0 && n < handshake_bytes) return n < least_handshake() ? hung_up_in_between() : wait_for_last_byte();
    if (n == 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
        return handshake::good;  // the library notices by itself
    if (n < 0) {  // reported only once: the library would take the connection for a closed one
        read_failure_ = errno;
        return handshake::failed;
    }
    constexpr std::int32_t day_ms = 24 * 3600 * 1000;
    const std::int32_t length = field(0), version = field(4), timeout = field(8), password = field(20);
    const bool no_session = field(12) == 0 && field(16) == 0;
    const bool plausible = (length == 36 || length == 37) && version == 0 && password == 16 && timeout >= 0 &&
                           timeout <= day_ms && (timeout > 0) == !no_session;
    // ClickHouse Keeper refuses a client so.
    constexpr std::int32_t without_leader = 42;
    if (length == 36 && version == without_leader) return handshake::has_no_leader;
    // "No session" is a server's answer to an expired session, which this client must have had.
    if (!plausible || (no_session && session_id() == 0)) return handshake::bad;
    if (n > 4 + length) return handshake::bad;  // the library would take the next byte for one of the answer
    if (n < 4 + length) return wait_for_last_byte();
    const unsigned char is_read_only = length == 37 ? answer.back() : 0;
    if (is_read_only > 1) return handshake::bad;
    known_->greeted(server_, length == 37);
    return read_only_ && is_read_only == 0 ? handshake::has_quorum : handshake::good;
}

std::string_view c_backend::reason_of(handshake failed) noexcept {
    switch (failed) {
        case handshake::tls: return "expects TLS";
        case handshake::has_quorum: return "has a quorum";
        case handshake::opens_no_sessions:
            return "is read-only, and opens no sessions: its configuration needs localSessionsEnabled=true";
        case handshake::has_no_leader: return "has no leader";
        default: return "not a ZooKeeper server";
    }
}

// 40 of 41 bytes have come. The library would read these, and no event would follow for the last byte: so the next
// event is put off until all 41 are there.
c_backend::handshake c_backend::wait_for_last_byte() {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &longest_handshake_bytes, sizeof longest_handshake_bytes);
    return hung_up_in_between();
}

// Whether the server has hung up after only a part of its answer.
c_backend::handshake c_backend::hung_up_in_between() const {
    pollfd p{fd_, POLLRDHUP, 0};
    return ::poll(&p, 1, 0) > 0 ? handshake::bad : handshake::incomplete;
}

drain_result c_backend::process(bool readable, bool writable) {
    if (fd_ < 0 || !usable()) return drain_result::drained;
    drain_result result = drain_result::drained;
    if (tunnel_) {
        if (!tunnel_is_open()) return report(), drain_result::drained;
        readable = writable = true;  // the readiness is that of the network
    }
    int rc = ZOK;
    // While it connects, the library is not ready to read, although it does not refuse to.
    const auto can_read = [&] { return zoo_state(zh_) != ZOO_CONNECTING_STATE; };
    // The library discards unread answers when a write of its own fails: after the tunnel's end, it reads first.
    const bool reads_first = tunnel_ && tunnel_->has_ended() && can_read();
    if (writable) own_wants_write_ = false;
    const bool is_whole = unsent_.empty() || !connected() || finish_own_frame();
    if (writable && wants_write_ && is_whole && !reads_first) rc = library_process(ZOOKEEPER_WRITE);
    if (readable && rc == ZOK && can_read()) {
        const handshake answer = zoo_state(zh_) == ZOO_ASSOCIATING_STATE ? look_at_handshake() : handshake::good;
        if (answer == handshake::incomplete) {
            // the rest of the answer brings another event
        } else if (answer != handshake::good) {
            if (answer == handshake::has_quorum) leave_server_with_quorum();
            const bool unread = answer == handshake::failed;
            fail(server_ + ": " +
                 (unread ? std::generic_category().message(read_failure_) : std::string(reason_of(answer))));
            fail_connection();
        } else if (read_only_ && zoo_state(zh_) == ZOO_ASSOCIATING_STATE) {
            accept_read_only();
        } else {
            result = read_packets();
        }
    }
    if (usable()) cure_poison();
    send_through_tunnel();
    if (tunnel_ && tunnel_->holds_back()) result = drain_result::more;
    report();
    return result;
}

// The library must not learn that the server is read-only: in ZOO_READONLY_STATE it looks for other servers by blocking
// calls of its own, and completes requests without an answer as if they had succeeded. So it gets the answer with the
// last byte, the flag, cleared, through a socket pair that is behind its descriptor for this one call.
void c_backend::accept_read_only() {
    std::array<char, longest_handshake_bytes> answer{};
    std::array<int, 2> pair{-1, -1};
    const ssize_t n = ::recv(fd_, answer.data(), answer.size(), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;  // nothing has come
    if (n <= 0) return void(library_process(ZOOKEEPER_READ));  // the server has hung up: the library notices by itself
    if (n != longest_handshake_bytes || answer.back() != 1) return;  // has come since look_at_handshake()
    [[maybe_unused]] const auto taken = ::recv(fd_, answer.data(), answer.size(), MSG_DONTWAIT);
    const owned_descriptor network(::fcntl(fd_, F_DUPFD_CLOEXEC, 0));
    if (network.get() < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
        fail(server_ + ": " + std::generic_category().message(errno));
        return fail_connection();
    }
    const owned_descriptor library_end(pair[0]), our_end(pair[1]);
    answer.back() = 0;
    const int any = 1;
    ::setsockopt(network.get(), SOL_SOCKET, SO_RCVLOWAT, &any, sizeof any);
    bool good = ::send(our_end.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == longest_handshake_bytes &&
                ::dup3(library_end.get(), fd_, O_CLOEXEC) >= 0;
    if (good) library_process(ZOOKEEPER_READ);
    good = ::dup3(network.get(), fd_, O_CLOEXEC) >= 0 && good && connected();
    // What the library has sent: its credentials.
    std::array<char, 4096> sent{};
    for (ssize_t k = 0; good && (k = ::recv(our_end.get(), sent.data(), sent.size(), MSG_DONTWAIT)) > 0;)
        good = ::send(fd_, sent.data(), static_cast<std::size_t>(k), MSG_NOSIGNAL | MSG_DONTWAIT) == k;
    if (good) return;
    fail(server_ + ": the session with the read-only server could not be opened");
    fail_connection();
}

// The server has opened a session, which is not needed: the client's own connection finds this server, too.
void c_backend::leave_server_with_quorum() {
    std::array<char, longest_handshake_bytes> answer{};  // unread, it would make close() reset the connection
    [[maybe_unused]] const auto taken = ::recv(fd_, answer.data(), answer.size(), MSG_DONTWAIT);
    const std::array<std::uint32_t, 3> packet{htonl(8), htonl(static_cast<std::uint32_t>(goodbye_xid)),
                                              htonl(static_cast<std::uint32_t>(-11))};
    [[maybe_unused]] const auto n = ::send(fd_, packet.data(), sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    send_through_tunnel();
}

drain_result c_backend::read_packets() {
    constexpr int fair_share = 256;  // fact 8
    const bool was_connected = connected();
    const std::uint64_t connection = connection_;
    const auto is_same = [&] { return usable() && connection == connection_ && connected(); };
    for (int packet = 0; packet < fair_share; ++packet) {
        if (looks_at_frames() && between_frames_) {
            const arrival next = look_at_next_frame();
            if (next == arrival::nothing || next == arrival::wrong) return drain_result::drained;
            if (next == arrival::ours) {
                tell_news();
                if (!is_same() || (!expects_answer() && !tunnel_)) return drain_result::drained;
                continue;
            }
        }
        const std::size_t expected = outstanding_;
        const int rc = library_process(ZOOKEEPER_READ);
        if (!was_connected) {
            if (zoo_state(zh_) == ZOO_READONLY_STATE) {
                fail(server_ + ": read-only server");
                fail_connection();
            } else if (connected()) {
                const int any = 1;
                ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &any, sizeof any);
                if (tunnel_) return drain_result::more;
            }
            return drain_result::drained;  // unread data brings another event
        }
        between_frames_ = rc == ZOK;
        if (is_refused_request_) leave_server_that_lacks();
        if (!own_.empty()) count_answers(expected - outstanding_);
        tell_news();
        // Unread data brings another event, unless the tunnel has already taken the data from the network.
        if (rc != ZOK || !is_same() || (!expects_answer() && !tunnel_)) return drain_result::drained;
    }
    return drain_result::more;
}

link_state c_backend::link() const {
    const int state = zh_ ? zoo_state(zh_) : 0;
    return refused_                             ? link_state::auth_failed
           : state == ZOO_CONNECTED_STATE       ? link_state::connected
           : state == ZOO_EXPIRED_SESSION_STATE ? link_state::expired
           : state == ZOO_AUTH_FAILED_STATE     ? link_state::auth_failed
                                                : link_state::disconnected;
}

// ----------------------------------------------------------------------------------------- ending connections

// The library notices a dead connection, and then cleans up properly: so this kills the connection. The descriptor's
// number stays, the socket behind it is replaced by one without a peer. In particular, data in the old socket's buffer
// can no longer be read.
void c_backend::fail_connection() {
    ending_connection_ = true;
    for (int attempt = 0; attempt < 4 && zoo_state(zh_) != 0 && !is_unrecoverable(zh_); ++attempt) {
        int fd = fd_;
        if (zoo_state(zh_) == ZOO_NOTCONNECTED_STATE || fd < 0) {
            int events = 0;
            timeval tv{};
            library_interest(fd, events, tv);
            if (fd < 0) continue;
        }
        dead_.replace(fd);
        library_process(ZOOKEEPER_READ | ZOOKEEPER_WRITE);
        if (zoo_state(zh_) != 0) library_process(ZOOKEEPER_READ);
    }
    ending_connection_ = false;
    adopt_descriptor(-1);
}

// Fact 10: a send that fails closes the socket but keeps what is queued, and what was half sent, for the next
// connection. Failing that next connection before anything was sent on it empties the queues.
void c_backend::cure_poison() {
    if (reported_ == link_state::connected && zoo_state(zh_) == ZOO_NOTCONNECTED_STATE) {
        adopt_descriptor(-1);
        fail_connection();
    }
}

void c_backend::abort_connection() {
    if (!usable()) return;
    fail(attempt());
    left_by_us_ = true;
    fail_connection();
    report();
}

// Fact 20: zookeeper_close() would wait, blocking, for seconds. The goodbye is written here instead, its answer is
// never shown to the library (which would abort on it), and the library is closed when it has no connection.
bool c_backend::send_goodbye() {
    if (!usable() || !connected() || fd_ < 0) return false;
    if (!unsent_.empty() && !finish_own_frame()) return false;
    int fd = -1, events = 0;
    timeval tv{};
    if (library_interest(fd, events, tv) != ZOK || (events & ZOOKEEPER_WRITE) != 0 || !connected()) return false;
    wants_write_ = false;  // for goodbye_interest()
    const std::array<std::uint32_t, 3> packet{htonl(8), htonl(static_cast<std::uint32_t>(goodbye_xid)),
                                              htonl(static_cast<std::uint32_t>(-11))};
    // After a part of it no other request may follow, and no answer will: the caller's time limit ends the wait.
    const bool sent = ::send(fd_, packet.data(), sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    send_through_tunnel();
    return sent;
}

// A server hangs up after its answer. A server that hangs up without an answer has lost its leader, or is being
// stopped: the session lives.
goodbye_result c_backend::answer_to_goodbye() {
    ssize_t n = 0;
    do {
        send_through_tunnel();
        if (tunnel_) tunnel_->receive();
        n = read_last_bytes(fd_, last_bytes_);
    } while (tunnel_ && tunnel_->holds_back());
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return goodbye_result::none_yet;
    const bool answered = is_empty_answer(last_bytes_, goodbye_xid, ZOK);
    return answered ? goodbye_result::session_over : goodbye_result::connection_lost;
}

}  // namespace zkasio::detail
