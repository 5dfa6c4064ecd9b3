#pragma once

#include <zkasio/detail/seam/reply.hpp>
#include <zkasio/detail/seam/request.hpp>
#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/detail/seam/server_address.hpp>
#include <zkasio/error.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// The seam: all that the session needs from a ZooKeeper client, in zkasio's own types. Behind it are the C library
/// (c_backend), a mock in unit tests, and whatever transport comes next.
namespace zkasio::detail {

/// A request on its way; or somebody who waits for something. One number for both.
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
    bool secured = false;  ///< nothing is sent before secure(); else in the clear
};

/// What the backend waits for next.
struct interest {
    int descriptor = -1;           ///< valid until the next call; -1: only the time counts
    std::uint64_t connection =
        0;  ///< another number: the descriptor is another socket, although it may have the same number
    bool read = false;
    bool write = false;
    std::chrono::milliseconds timeout{0};
};

enum class drain_result { drained, more };

/// What has come of a goodbye.
enum class goodbye_result {
    none_yet,
    session_over,     ///< the server has said so
    connection_lost,  ///< before the server has said anything: the session may live until it times out
};

/// What is peculiar to one backend, and not to ZooKeeper.
struct backend_traits {
    /// How many bytes of paths (chroots included) may be watched at a time: it sets all watches again in one request
    /// after a reconnect, which a server has to accept.
    std::size_t watched_path_bytes = std::numeric_limits<std::size_t>::max();
};

/// Driven from one strand. Listener calls come only from within process(), next_interest(), end_batch(), set_servers(),
/// abort_connection() and close(), never from submit(). The listener may call any of these in return (what that brings
/// is told by the outer call, in order); it must not destroy the backend.
///
/// In a child process (fork()) nothing is sent, and the listener is not called any more.
class backend {
public:
    virtual ~backend() = default;

    virtual backend_traits traits() const { return {}; }

    /// Throws zkasio::error when there is nothing to connect to.
    virtual void open(const open_params& p) = 0;

    /// Whether a connection stands or is being tried. When not, next_interest() begins to try the next server.
    virtual bool has_socket() const = 0;

    /// A server was asked for a session, and has not answered.
    virtual bool handshake_sent() const { return false; }
    /// It has accepted the connection, and has not answered.
    virtual bool accepted() const { return handshake_sent(); }

    virtual interest next_interest() = 0;

    /// With open_params::secured: the connection that is tried stands, and waits for secure().
    virtual bool is_to_be_secured() const { return false; }
    /// How that connection is made; the next process() goes on with it.
    virtual void secure(channel_maker) {}

    /// Reads up to a fair number of replies, and writes when `writable`.
    virtual drain_result process(bool readable, bool writable) = 0;

    /// Sends, or refuses at once with a code; when it refuses, nothing was sent, and no reply follows.
    /// std::errc::resource_unavailable_try_again: not now, but when the socket has become writable, or on the next
    /// connection (this one may have ended in a submit() that end_batch() has not told of).
    virtual std::error_code submit(op_id id, const request& r) = 0;

    /// After a submit() outside of a batch: whether there is nothing that end_batch() would have to tell.
    virtual bool is_settled() const { return false; }

    /// Everything submitted between these two may leave in common packets. The second follows also where one submit()
    /// needs no first: it tells what has happened meanwhile.
    virtual void begin_batch() = 0;
    virtual void end_batch() = 0;

    /// Drops the connection, or gives up the attempt(); the next one goes to another server. Outstanding requests end
    /// with connection_loss.
    virtual void abort_connection() = 0;

    /// The list from now on. A connection to one that is not in it is left.
    virtual void set_servers(const std::vector<server_address>& servers) = 0;

    /// For a backend that has a table of watches of its own, and sets them again after a reconnect: it forgets this
    /// one, while there is no connection to remove it over.
    virtual void forget_watch(const std::string&, watch_kind) {}

    virtual std::int64_t session_id() const = 0;
    virtual std::string session_password() const = 0;
    virtual std::chrono::milliseconds session_timeout() const = 0;
    virtual std::string last_failure() const = 0;  ///< why the last connection ended or did not begin
    virtual std::string attempt() const {
        return current_server() + ": no answer";
    }                                                ///< what the connection that is tried lacks
    virtual std::string current_server() const = 0;  ///< that is connected to, or was tried last

    /// Asks the server to end the session. False when that cannot be sent now. Afterwards only answer_to_goodbye(),
    /// goodbye_interest() and close() may be called.
    virtual bool send_goodbye() = 0;
    virtual goodbye_result answer_to_goodbye() = 0;
    /// What answer_to_goodbye() waits for: also to write, when part of the goodbye is still to be sent.
    virtual interest goodbye_interest() const { return {}; }

    /// Ends everything at once, without blocking. Outstanding requests end with closing.
    virtual void close() = 0;
};

std::unique_ptr<backend> make_c_backend(backend_listener& listener);

}  // namespace zkasio::detail
