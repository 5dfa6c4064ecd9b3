#pragma once

#include <zkasio/detail/seam/known_requests.hpp>
#include <zkasio/detail/seam/request.hpp>
#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/detail/seam/server_address.hpp>
#include <zkasio/error.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// The seam between the session and a ZooKeeper client, in zkasio's own types. Implementations: the C library
/// (c_backend), a mock in unit tests, and any future transport.
namespace zkasio::detail {

/// The id of a request under way, or of an operation that waits for an event. Both share one numbering.
using op_id = std::uint64_t;

// --------------------------------------------------------------------------------------------------- events
enum class link_state {
    disconnected,
    connected,
    expired,      ///< final
    auth_failed,  ///< final
};
enum class node_event { created, removed, data_changed, children_changed };

class backend_listener {
public:
    virtual void on_reply(op_id id, reply&& r) noexcept = 0;
    virtual void on_link(link_state s) noexcept = 0;
    virtual void on_node_event(node_event e, std::string_view path) noexcept = 0;
    /// Of a watch that an add_watch_request has set. A change of a node that has other watches as well is told twice,
    /// here first. The order of both: a change is told before any answer that shows it. `zxid` of the change; 0: the
    /// server does not say.
    virtual void on_added_watch(node_event, std::string_view, std::int64_t /*zxid*/) noexcept {}
    virtual void on_log(std::string_view line) noexcept = 0;

protected:
    ~backend_listener() = default;
};

// --------------------------------------------------------------------------------------------------- backend
struct open_params {
    std::vector<server_address> servers;  ///< in the order to try
    std::string chroot;
    std::chrono::milliseconds session_timeout{0};
    std::int64_t session_id = 0;  ///< 0: a new session
    std::string session_password;
    std::vector<add_auth_request> auth;  ///< presented on every connection, before anything else
    bool secured = false;  ///< true: nothing is sent before secure(); false: connections go through no channel
    /// Connects to servers without a quorum, which only read, and to no others. The session is none of the ensemble's:
    /// no server with a quorum knows of it.
    bool read_only = false;
    /// What the client knows of the servers, and what the backend adds to it: see backend::submit(). Null: nothing yet
    /// (servers in memory want one).
    std::shared_ptr<known_requests> known;
};

/// The events and the timeout that the backend waits for next.
struct interest {
    int descriptor = -1;           ///< valid until the next call; -1: wait only for the timeout
    std::uint64_t connection =
        0;  ///< changes with the socket: another socket may have the same descriptor number
    bool read = false;
    bool write = false;
    std::chrono::milliseconds timeout{0};
};

enum class drain_result { drained, more };

/// The outcome of send_goodbye().
enum class goodbye_result {
    none_yet,
    session_over,     ///< the server has confirmed it
    connection_lost,  ///< before the server has answered: the session may live until it times out
};

/// Driven from one strand. Listener calls come only from within process(), next_interest(), end_batch(), set_servers(),
/// abort_connection() and close(), never from submit(). The listener may call any of these in return (the outer call
/// delivers the resulting news, in order); the listener must not destroy the backend.
///
/// In a child process (fork()) nothing is sent, and the listener is no longer called.
class backend {
public:
    virtual ~backend() = default;

    /// Throws zkasio::error when there is nothing to connect to.
    virtual void open(const open_params& p) = 0;

    /// Whether there is a connection or an attempt to connect. If not, next_interest() begins to try the next server.
    virtual bool has_socket() const = 0;

    /// A server was asked for a session, and has not answered.
    virtual bool handshake_sent() const { return false; }
    /// A server has accepted the connection, and has not answered.
    virtual bool accepted() const { return handshake_sent(); }

    virtual interest next_interest() = 0;

    /// With open_params::secured: the attempted connection is established, and waits for secure().
    virtual bool is_to_be_secured() const { return false; }
    /// The channel for the connection that is_to_be_secured(); the next process() continues with it.
    virtual void secure(channel_maker) {}

    /// The last attempt to connect has failed because the client could not log in.
    virtual bool login_failed() const { return false; }
    /// All servers have refused the client's login, and with that link_state::auth_failed has come.
    virtual bool login_refused() const { return false; }

    /// Reads up to a fair number of replies, and writes when `writable`.
    virtual drain_result process(bool readable, bool writable) = 0;

    /// Sends the request, or refuses it at once with a code. After a refusal nothing was sent, and no reply follows.
    /// std::errc::resource_unavailable_try_again: try again when the socket has become writable, or on the next
    /// connection (this connection may have ended in a submit() that end_batch() has not reported yet).
    /// zk_errc::unimplemented: the server does not know the request, see known_requests. Where it does not know the
    /// create that answers with a stat, another one is sent, and the stat is read.
    virtual std::error_code submit(op_id id, const request& r) = 0;

    /// After a submit() outside of a batch: whether end_batch() would have nothing to report.
    virtual bool is_settled() const { return false; }

    /// Requests submitted between begin_batch() and end_batch() may share packets. A single submit() needs no
    /// begin_batch(), but end_batch() follows it, too: end_batch() reports the events since.
    virtual void begin_batch() = 0;
    virtual void end_batch() = 0;

    /// Drops the connection, or gives up the attempt(); the next attempt goes to another server. Outstanding requests
    /// end with connection_loss.
    virtual void abort_connection() = 0;

    /// Leaves the server that is connected: the next attempt goes to this one, which is nearer. Otherwise as
    /// abort_connection().
    virtual void move_to(const server_address&) { abort_connection(); }
    /// Of the server that is connected.
    virtual int current_rank() const { return 0; }
    /// The connection has lasted: after it, the servers of the lowest rank are tried first. Otherwise a round through
    /// the list goes on with each attempt.
    virtual void begin_round() {}

    /// Replaces the list of servers. A connection to a server that is not in the new list is left.
    virtual void set_servers(const std::vector<server_address>& servers) = 0;

    /// For a backend with its own table of watches, which it would set again after a reconnect: removes this watch from
    /// the table. To be called while there is no connection.
    virtual void forget_watch(const std::string&, watch_kind) {}

    virtual std::int64_t session_id() const = 0;
    virtual std::string session_password() const = 0;
    virtual std::chrono::milliseconds session_timeout() const = 0;
    virtual std::string last_failure() const = 0;  ///< why the last connection ended or did not begin
    virtual std::string attempt() const {
        return current_server() + ": no answer";
    }                                                ///< why the current attempt to connect has not succeeded yet
    virtual std::string current_server() const = 0;  ///< the one connected to, or tried last

    /// Asks the server to end the session. False when the request cannot be sent now. Afterwards only
    /// answer_to_goodbye(), goodbye_interest() and close() may be called.
    virtual bool send_goodbye() = 0;
    virtual goodbye_result answer_to_goodbye() = 0;
    /// The events that answer_to_goodbye() waits for; writability too, while part of the goodbye is still unsent.
    virtual interest goodbye_interest() const { return {}; }

    /// Ends everything at once, without blocking. Outstanding requests end with closing.
    virtual void close() = 0;

    /// False: the server that is connected, or was last, may end sessions with their connections, as ClickHouse Keeper
    /// does: rule K3 of known_requests.
    virtual bool is_zookeeper() const { return true; }
};

std::unique_ptr<backend> make_c_backend(backend_listener& listener);

}  // namespace zkasio::detail
