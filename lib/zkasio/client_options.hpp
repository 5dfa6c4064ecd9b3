#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/create_options.hpp>
#include <zkasio/export.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/retry_policy.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/system_executor.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

class client_observer;
class sasl_mechanism;
class tls_options;
namespace detail {
class transport_security;
}

/// The effect of a lost connection on locks that are held.
enum class suspension_policy {
    keep,  ///< none until the lease ends: the connection may come back in time (Curator's
           ///< SessionConnectionStateErrorPolicy)
    lose,  ///< the locks are lost at once (Curator's StandardConnectionStateErrorPolicy)
};

/// The reaction of a client to the expiry of its session.
enum class session_renewal {
    automatic,  ///< the client opens a new session
    none,  ///< the client stays expired; every operation fails with errc::session_expired. A session that was given up
           ///< without a server's word is still ended as soon as a server can be reached
};

/// How soon after its last acknowledged write a session that holds something writes again, which renews its lease: this
/// part of the session timeout T. Less often costs the servers fewer writes, each of which all of them store, and
/// leaves less time for an outage. So much of the lease is left when the renewal is sent, less a round trip (T/20 less
/// for the first one after a time without holds; with client_options::tick() more by T/4 - tick/2). Over a slow link,
/// renewals are sent while two round trips are left.
enum class lease_renewal {
    quarter = 4,  ///< 0.36 T
    third = 3,    ///< 0.28 T
    half = 2,     ///< 0.11 T: for sessions of 30 s and longer. Bodies have no stop margin, see lock_guard::run()
};

/// The id and the password of a session, with which another client, or a later process, can take the session over. Made
/// without arguments, credentials are of no session: their id is 0, which `client`'s constructor refuses to resume().
class session_credentials {
public:
    session_credentials() = default;
    session_credentials(std::int64_t id, std::string password) : id_(id), password_(std::move(password)) {}
    std::int64_t id() const noexcept { return id_; }
    const std::string& password() const noexcept { return password_; }  ///< 16 bytes

private:
    std::int64_t id_ = 0;
    std::string password_;
};

/// The arguments of one `add_auth`, with which a client authenticates itself.
class auth_info {
public:
    auth_info(std::string scheme, bytes credential)
        : scheme_(std::move(scheme)), credential_(std::move(credential).take()) {}
    const std::string& scheme() const noexcept { return scheme_; }
    const std::string& credential() const noexcept { return credential_; }
    friend bool operator==(const auth_info&, const auth_info&) = default;

private:
    std::string scheme_, credential_;
};

/// How a client connects, and what the client does when it cannot connect. Every setter returns the object:
/// `client_options{"zk1:2181,zk2:2181/app"}.session_timeout(10s)`.
class client_options {
public:
    using duration = std::chrono::milliseconds;
    using log_sink = std::function<void(const log_record&)>;
    using server_rank = std::function<int(std::string_view name, std::string_view address)>;

    /// @param servers "host[:port],host[:port]...[/chroot]"; an IPv6 address stands in brackets; the port is 2181
    /// unless given. The list is tried in random order. `client`'s constructor throws for a list that is not valid.
    client_options(std::string servers) : servers_(std::move(servers)) {}
    client_options(const char* servers) : servers_(servers) {}

    // Times are positive, and no longer than a day: `client`'s constructor throws for others.

    /// The timeout to ask for (10 s), at least 100 ms; servers may grant less or more, see `session::timeout()`.
    client_options& session_timeout(any_duration d) { session_timeout_ = d; return *this; }
    /// The servers' tickTime (default: 0, unknown). With a tick, locks stand a slower link: a write renews a lease to
    /// T - tick/2 - T/8 after its sending, instead of T - T/4 - T/8 (T: the session timeout; less a round trip and
    /// T/64, and T/8 less for the first write after a time without holds).
    ///
    /// Without a tick, T is taken to be two ticks or more. Servers ensure this unless their `minSessionTimeout` is
    /// lower: *with such servers the tick has to be given*, or a lock may be believed to be held for too long. If
    /// observers are fed by a follower (`observerMasterPort`), twice the tick has to be given. The tick is checked
    /// against the granted timeout, as far as possible: if T is below two ticks, this is logged, and leases are short;
    /// a tick that is too short for the least timeout of the servers is logged and not used.
    client_options& tick(any_duration d) { tick_ = d; return *this; }
    /// How long an operation waits for a connection before it fails with errc::not_connected (15 s). A wait for
    /// something else (a lock, a leader, a value) goes on through an outage as long as the session lives.
    client_options& connection_timeout(any_duration d) { connection_timeout_ = d; return *this; }
    /// How long `close()` waits for outstanding answers or a lost connection, and then for the server's goodbye (1 s
    /// each).
    client_options& close_timeout(any_duration d) { close_timeout_ = d; return *this; }
    /// How many bytes a session's ephemeral nodes may have together, their paths and 4 each (1 MiB: some 10 000 nodes).
    /// Servers remove all in one transaction, and do not start again with one above twice their jute.maxbuffer (1 MiB).
    /// From 256 kB on a warning is logged. Contenders of locks beyond three quarters of the budget wait, without a node
    /// and in order, unless no other one of this session waits for the same lock; see also work_queue::receive(). Any
    /// other create beyond the budget fails with errc::too_many_ephemerals; and so does a contender when none of these
    /// nodes can go without a release by this session (what it holds, and what waits behind that): it would wait for
    /// itself. This error is not condition::retryable: mostly only this process can make room. A session of resume()
    /// has a quarter of the budget: the nodes of before are not known, nor needs a persistent_node room that finds one
    /// of them. When half of it is used, and then half of what was left, an exists() of each node that is held tells
    /// which ones others have removed; and so once a minute while creates are refused.
    client_options& ephemeral_budget(std::size_t bytes) { ephemeral_budget_ = bytes; return *this; }
    /// The retry policy of operations that only read (exponential, 8 times).
    client_options& retry(retry_policy p) { retry_ = p; return *this; }
    /// Makes a client that reads from a server *without* a quorum, and does nothing else: for a program to turn to when
    /// its own client is session_state::suspended, or cannot connect. The servers have to be set up for that (the Java
    /// property readonlymode.enabled=true, and localSessionsEnabled=true in their configuration).
    ///
    /// *Such data may be old*, also older than what another client has read before. What writes, and sync(), fails with
    /// zk_errc::not_read_only at once; nothing was sent. So do the recipes that write.
    ///
    /// The client has one session, which only that server knows, and which ends with the connection: at the latest when
    /// the server has a quorum again. Then the client is session_state::expired for good, caches and streams of it
    /// end, and client::events() tells why. Servers that have a quorum are left at once: each attempt costs them two
    /// writes (a session, and its end), so do not keep a client that waits for the loss of the quorum.
    client_options& read_only(bool on = true) { read_only_ = on; return *this; }
    /// Which servers are nearer than others: `rank(name, address)`, with the name as servers() has it and the numeric
    /// address, is called on the client's strand whenever names have been looked up; a lower rank is nearer. The client
    /// connects to a server of the lowest rank that can be reached, at random within a rank, and begins with the lowest
    /// rank again after each connection that has lasted 10 s.
    ///
    /// While the client is connected to another server, it asks a nearer one whether it serves, `every` so often or up
    /// to twice as long, at random (0: every 6 session timeouts): a connection, and "srvr"; through TLS a connection
    /// alone. When this was so twice in a row, half of that apart or more, the client moves there. If that server does
    /// not keep it, the client goes back, and these pauses are doubled. One that is read_only() stays where it is.
    ///
    /// *To move is a short outage*: state() is session_state::suspended for as long as a connection takes, and caches
    /// read again what they watch. The session and its locks stay, and no request is lost: the client moves while the
    /// lease of what it holds is at least half the session timeout, and when nothing is under way, for which later
    /// requests wait for up to T/8. With suspension_policy::lose it moves only while it holds nothing. Sessions that
    /// servers keep for themselves (localSessionsEnabled=true) end with a move. Ranks that throw are the last; of a
    /// server with several names, the lowest rank counts.
    client_options& prefer(server_rank rank, any_duration every = duration(0)) {
        prefer_ = std::move(rank);
        look_every_ = every;
        return *this;
    }
    /// Follows the ensemble's own list of servers, which join and leave by reconfigure(): servers() is for the first
    /// connection, and then the members of /zookeeper/config take their place, whenever they change. Those of servers()
    /// that are no members are tried last, when none of these can be reached. Members without an address for clients
    /// are left out; without a member that has one, the list stays as it is, and so it does while the configuration
    /// cannot be read, which is logged. It costs one watch, and one read with each change and each connection; a change
    /// is followed within a session timeout, at random. *The addresses are those that the servers have been given*: of
    /// no use for clients that reach them by others, through NAT or port forwarding, or by TLS at a port of its own.
    client_options& follow_ensemble(bool on = true) { follow_ensemble_ = on; return *this; }
    client_options& suspension(suspension_policy p) { suspension_ = p; return *this; }
    client_options& renewal(session_renewal r) { renewal_ = r; return *this; }
    /// How often the session's lease is renewed while the session holds something (lease_renewal::quarter). Other
    /// writes of the session renew the lease as well, and put the renewal off.
    client_options& lease_renewal(zkasio::lease_renewal after) { lease_renewal_ = after; return *this; }
    /// Presented on every connection; may be called more than once. `client`'s constructor throws for an empty scheme
    /// or one with a NUL.
    client_options& auth(std::string scheme, bytes credential) {
        auth_.emplace_back(std::move(scheme), std::move(credential));
        return *this;
    }
    /// Creates the chroot of servers(), as the "/app" of "zk1:2181/app", if it is missing when a session begins: before
    /// any other request of the session is sent. `how` as for operations::create(): with_parents() by default, or
    /// `create_options().mode(create_mode::container).parents(missing_parents::create_container)` with an acl(), say.
    /// Where the chroot exists, that costs a read for each session; where not, a second client for a moment, which has
    /// no chroot, the credentials of auth() but not those of client::add_auth(), and the same log(). If another client
    /// creates it at the same time, all is well. If the servers refuse to create it, or it is still missing when the
    /// client has been connected for connection_timeout(), an error is logged once for each session, and requests are
    /// sent all the same, and fail. A container that has become empty is created again with the next session. Without a
    /// chroot, and with read_only(), nothing is created. `client`'s constructor throws for a mode other than persistent
    /// and container, and for protection.
    client_options& create_chroot(create_options how = with_parents()) {
        create_chroot_ = {std::move(how)};
        return *this;
    }
    /// The ACL of every node that this client creates without one of its own: by create(), and by all recipes whose
    /// options name no other. open_acl() by default, as in ZooKeeper itself: any client may change or remove the nodes
    /// of a lock. With `auth("digest", "user:password")` and `default_acl(creator_digest_acl(user, password))`, only
    /// clients with the same password may. A client with `auth()` for which none was set warns, once, before it creates
    /// such a node; and so does a client with tls() before it creates a node with creator_all_acl(), see there.
    /// `client`'s constructor throws for an empty ACL, zkasio::default_acl(), or a NUL in an id.
    client_options& default_acl(acl a) {
        default_acl_ = std::move(a);
        has_default_acl_ = true;
        return *this;
    }
    /// Takes over this session instead of opening a new one. The client that had it has to be gone: as long as it runs,
    /// it connects again, and takes the session back.
    ///
    /// A persistent_node, a member of a group and an announcement of the same name find the ephemeral node that the
    /// former client has left. What it held is not taken over: locks, numbers of slots, items of a work_queue, and
    /// places in a double_barrier stay taken, for this client as for others, until their nodes are removed. Where an
    /// acquire, a consumer or a member of a barrier of this client meets such nodes, a warning names them, and they are
    /// removed as soon as one connection of this client has lasted for the session timeout: by then the former client
    /// holds nothing any more, even if it was not closed but hangs. Therefore session_timeout() must not be shorter
    /// than the former client's. Nodes that nobody meets stay until the session ends: release locks before, see
    /// client::hand_over(). Until they are removed, members of a double_barrier are counted.
    ///
    /// In return for this, the first acquire of this session that has to wait at a lock (or a barrier, or a queue of
    /// which items are claimed) costs the servers a sync, a listing, and a read of the stat of each node there.
    client_options& resume(session_credentials c) { resume_ = {std::move(c)}; return *this; }
    /// The sink is called on the client's strand with one record at a time, in order, soon after the event of the
    /// record. The sink may use the client and make other clients; while the sink runs, its client does nothing else.
    /// Exceptions of the sink are ignored. By default, warnings and errors are written to the standard error stream.
    /// @param sink a function of a log_record, or of a std::string_view, which is the text of the record; nullptr logs
    /// nothing.
    client_options& log(log_sink sink, log_level least = log_level::info) {
        log_ = std::move(sink);
        log_least_ = least;
        return *this;
    }

    /// The observer receives reports of the requests, sessions and locks of the client. No observer by default. See
    /// client_observer, and client::stats() for numbers alone.
    /// @param where the observer is called, one call at a time.
    client_options& observer(std::shared_ptr<client_observer> o,
                             asio::any_io_executor where = asio::system_executor()) {
        observer_ = std::move(o);
        observe_on_ = std::move(where);
        return *this;
    }

    /// Replaces the list of servers that was given to the constructor, for options that are otherwise the same.
    client_options& servers(std::string list) { servers_ = std::move(list); return *this; }

    /// Connects through TLS, to the servers' secureClientPort: see tls_options. Needs the CMake target zkasio::tls, in
    /// which this function is defined. Without this call the connection is not encrypted.
    ZKASIO_EXPORT client_options& tls(const tls_options& o);

    /// Authenticates each connection by SASL, before anything but the session's own handshake: `.sasl(digest_md5(user,
    /// password))` of zkasio/sasl/digest_md5.hpp, or another mechanism, see docs/sasl.md. With or without tls(). The
    /// login is part of an attempt to connect: when one server refuses the client, it goes on with the others, and with
    /// the server's other names. When all addresses of the list have refused, under each of their names, since the last
    /// connection, the client is session_state::auth_failed for good. While one of them does not answer, the client
    /// goes on at growing pauses. The identity is sasl_user(name). nullptr: no SASL.
    client_options& sasl(std::shared_ptr<const sasl_mechanism> m) { sasl_ = std::move(m); return *this; }

    /// Whether servers that are not ZooKeeper's are sent requests that some of them do not know: creates that answer
    /// with a stat, of containers, or with a time to live; removals of watches; add_watch(), multi_read(), who_am_i(),
    /// ephemerals() and count_below(). Such a server, ClickHouse Keeper among them, hangs up at a request that it does
    /// not know, and with the connection the session ends. By default (false) such servers are not sent these: the
    /// library does without, and where it cannot, operations fail with zk_errc::unimplemented. With true the client
    /// finds out what they know, and loses two sessions an hour for each request that they do not. They are recognized
    /// by their answer to the handshake. Servers of ZooKeeper are asked for everything in any case, since the session
    /// outlives a refusal there, which is remembered for an hour.
    client_options& try_all_requests(bool on = true) { try_all_ = on; return *this; }

    const std::string& servers() const noexcept { return servers_; }
    duration session_timeout() const noexcept { return session_timeout_; }
    duration tick() const noexcept { return tick_; }
    duration connection_timeout() const noexcept { return connection_timeout_; }
    duration close_timeout() const noexcept { return close_timeout_; }
    std::size_t ephemeral_budget() const noexcept { return ephemeral_budget_; }
    const retry_policy& retry() const noexcept { return retry_; }
    bool reads_only() const noexcept { return read_only_; }
    bool tries_all_requests() const noexcept { return try_all_; }
    const server_rank& prefer() const noexcept { return prefer_; }  ///< empty: all are alike
    duration looks_every() const noexcept { return look_every_; }
    bool follows_ensemble() const noexcept { return follow_ensemble_; }
    suspension_policy suspension() const noexcept { return suspension_; }
    session_renewal renewal() const noexcept { return renewal_; }
    zkasio::lease_renewal lease_renewal() const noexcept { return lease_renewal_; }
    const std::vector<auth_info>& auth() const noexcept { return auth_; }
    const create_options* chroot_to_create() const noexcept {
        return create_chroot_.empty() ? nullptr : &create_chroot_.front();
    }
    const acl& default_acl() const noexcept { return default_acl_; }
    bool has_default_acl() const noexcept { return has_default_acl_; }  ///< one was set
    const session_credentials* resume() const noexcept { return resume_.empty() ? nullptr : &resume_.front(); }
    const log_sink& log() const noexcept { return log_; }
    log_level log_least() const noexcept { return log_least_; }
    const std::shared_ptr<client_observer>& observer() const noexcept { return observer_; }
    const asio::any_io_executor& observe_on() const noexcept { return observe_on_; }
    const std::shared_ptr<const detail::transport_security>& security() const noexcept { return security_; }
    const std::shared_ptr<const sasl_mechanism>& sasl() const noexcept { return sasl_; }  ///< null: none

private:
    friend struct detail::access;
    std::string servers_;
    duration session_timeout_{10'000}, tick_{0}, connection_timeout_{15'000}, close_timeout_{1'000};
    std::size_t ephemeral_budget_ = 1024 * 1024;
    retry_policy retry_ = retry_policy::exponential();
    bool read_only_ = false, try_all_ = false;
    server_rank prefer_;
    duration look_every_{0};
    bool follow_ensemble_ = false;
    suspension_policy suspension_ = suspension_policy::keep;
    session_renewal renewal_ = session_renewal::automatic;
    zkasio::lease_renewal lease_renewal_ = zkasio::lease_renewal::quarter;
    std::vector<auth_info> auth_;
    std::vector<create_options> create_chroot_;  // none or one
    acl default_acl_ = open_acl();
    bool has_default_acl_ = false;
    std::vector<session_credentials> resume_;  // none or one
    log_sink log_ = log_to_stderr;
    log_level log_least_ = log_level::warning;
    std::shared_ptr<client_observer> observer_;
    asio::any_io_executor observe_on_;
    std::shared_ptr<const detail::transport_security> security_;
    std::shared_ptr<const sasl_mechanism> sasl_;
};

}  // namespace zkasio
