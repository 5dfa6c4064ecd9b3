#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
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
class tls_options;
namespace detail {
class transport_security;
}

/// What a lost connection means for locks that are held.
enum class suspension_policy {
    keep,  ///< nothing, until the lease ends: the connection may come back in time (Curator's
           ///< SessionConnectionStateErrorPolicy)
    lose,  ///< they are lost at once (Curator's StandardConnectionStateErrorPolicy)
};

/// What happens after a session has expired.
enum class session_renewal {
    automatic,  ///< the client opens a new one by itself
    none,       ///< the client stays expired; every operation fails with errc::session_expired
};

/// Enough to take over a session that another client, or an earlier process, has opened. Made without arguments it is
/// of no session: its id is 0, and `client`'s constructor refuses to resume() it.
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

/// One `add_auth`: who this client says it is.
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

/// How a client connects and what it does when it can not. Every setter returns the object:
/// `client_options{"zk1:2181,zk2:2181/app"}.session_timeout(10s)`.
class client_options {
public:
    using duration = std::chrono::milliseconds;
    using log_sink = std::function<void(const log_record&)>;

    /// @param servers "host[:port],host[:port]...[/chroot]"; an IPv6 address stands in brackets; the port is 2181
    /// unless given. The list is tried in random order. `client`'s constructor throws for a list that is not valid.
    client_options(std::string servers) : servers_(std::move(servers)) {}
    client_options(const char* servers) : servers_(servers) {}

    // Times are positive, and no longer than a day: `client`'s constructor throws for others.

    /// What to ask the servers for (10 s), at least 100 ms; they may grant less or more, see `session::timeout()`.
    client_options& session_timeout(duration d) { session_timeout_ = d; return *this; }
    /// The servers' tickTime, when it is known (0: it is not). Locks then stand more of a slow link: a write renews a
    /// lease to T - tick/2 - T/8 after its sending, instead of T - T/4 - T/8 (T: the session timeout; less a round trip
    /// and T/64).
    ///
    /// Without it, T is taken to be two ticks or more. Servers see to that unless their `minSessionTimeout` is lower:
    /// *with such servers the tick has to be given*, or a lock may be believed to be held for too long. The same where
    /// observers are fed by a follower (`observerMasterPort`): give twice the tick there. What can be checked is
    /// checked, against the timeout that was granted: T below two ticks is logged, and leases are short; a tick that is
    /// too short for the least timeout of the servers is logged and not used.
    client_options& tick(duration d) { tick_ = d; return *this; }
    /// How long an operation waits for a connection before it fails with errc::not_connected (15 s). What waits for
    /// something else (a lock, a leader, a value) waits through an outage as long as the session lives.
    client_options& connection_timeout(duration d) { connection_timeout_ = d; return *this; }
    /// How long `close()` waits for the answers that are under way and for the server's goodbye, each (1 s).
    client_options& close_timeout(duration d) { close_timeout_ = d; return *this; }
    /// For operations that only read (exponential, 8 times).
    client_options& retry(retry_policy p) { retry_ = p; return *this; }
    client_options& suspension(suspension_policy p) { suspension_ = p; return *this; }
    client_options& renewal(session_renewal r) { renewal_ = r; return *this; }
    /// Presented on every connection; may be called more than once. `client`'s constructor throws for an empty scheme
    /// or one with a NUL.
    client_options& auth(std::string scheme, bytes credential) {
        auth_.emplace_back(std::move(scheme), std::move(credential));
        return *this;
    }
    /// Take over this session instead of opening a new one.
    client_options& resume(session_credentials c) { resume_ = {std::move(c)}; return *this; }
    /// Called with one record at a time, in order, on the client's strand, soon after what the record tells of. It may
    /// use the client and make others; while it runs, its client does nothing else. What it throws is ignored. Nothing
    /// is logged by default.
    /// @param sink a function of a log_record, or of the std::string_view that it says.
    client_options& log(log_sink sink, log_level least = log_level::info) {
        log_ = std::move(sink);
        log_least_ = least;
        return *this;
    }

    /// Is told what the client does: requests, sessions, locks. Nothing by default. See client_observer, and
    /// client::stats() for numbers alone.
    /// @param where it is called, one call at a time.
    client_options& observer(std::shared_ptr<client_observer> o,
                             asio::any_io_executor where = asio::system_executor()) {
        observer_ = std::move(o);
        observe_on_ = std::move(where);
        return *this;
    }

    /// These servers instead of those that the constructor was given, for what is otherwise the same.
    client_options& servers(std::string list) { servers_ = std::move(list); return *this; }

    /// Connect through TLS, to servers' secureClientPort: see tls_options. Needs the CMake target zkasio::tls, in which
    /// this is defined. In the clear unless it is called.
    ZKASIO_EXPORT client_options& tls(const tls_options& o);

    const std::string& servers() const noexcept { return servers_; }
    duration session_timeout() const noexcept { return session_timeout_; }
    duration tick() const noexcept { return tick_; }
    duration connection_timeout() const noexcept { return connection_timeout_; }
    duration close_timeout() const noexcept { return close_timeout_; }
    const retry_policy& retry() const noexcept { return retry_; }
    suspension_policy suspension() const noexcept { return suspension_; }
    session_renewal renewal() const noexcept { return renewal_; }
    const std::vector<auth_info>& auth() const noexcept { return auth_; }
    const session_credentials* resume() const noexcept { return resume_.empty() ? nullptr : &resume_.front(); }
    const log_sink& log() const noexcept { return log_; }
    log_level log_least() const noexcept { return log_least_; }
    const std::shared_ptr<client_observer>& observer() const noexcept { return observer_; }
    const asio::any_io_executor& observe_on() const noexcept { return observe_on_; }
    const std::shared_ptr<const detail::transport_security>& security() const noexcept { return security_; }

private:
    std::string servers_;
    duration session_timeout_{10'000}, tick_{0}, connection_timeout_{15'000}, close_timeout_{1'000};
    retry_policy retry_ = retry_policy::exponential();
    suspension_policy suspension_ = suspension_policy::keep;
    session_renewal renewal_ = session_renewal::automatic;
    std::vector<auth_info> auth_;
    std::vector<session_credentials> resume_;  // none or one
    log_sink log_;
    log_level log_least_ = log_level::info;
    std::shared_ptr<client_observer> observer_;
    asio::any_io_executor observe_on_;
    std::shared_ptr<const detail::transport_security> security_;
};

}  // namespace zkasio
