#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/seam/server_address.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

/// The seam to the encryption of connections, for the core itself links no OpenSSL: implemented by the component tls,
/// by fakes in unit tests, and by sasl_channel, which leads a connection through a tunnel for another reason. Only
/// interfaces without a source file: a shared zkasio exports nothing of detail/.
namespace zkasio::detail {

/// Encrypts one connection. No function waits: a function that cannot continue returns what it needs, and is called
/// again when the descriptor is ready for that.
class secure_channel {
public:
    enum class progress {
        done,
        needs_input,
        needs_output,
        ended,   ///< the peer has closed the connection
        failed,  ///< for good, see failure()
    };
    struct transfer {
        progress how;
        std::size_t bytes = 0;
    };

    virtual ~secure_channel() = default;

    /// `done`: the peer has proved to be the expected server. Never `ended`: that is a failure during the handshake.
    virtual progress handshake() = 0;
    /// Bytes come with `done` only.
    virtual transfer read(std::span<char> to) = 0;
    /// After any result but `done`, the next call has the same bytes, perhaps with more behind them.
    virtual transfer write(std::span<const char> from) = 0;
    virtual std::string failure() const = 0;
    virtual bool encrypts() const { return true; }

    /// What has failed, or fails if the connection ends now: it decides when the next attempt is made, if at all.
    enum class failure_kind {
        connection,
        login,    ///< the client cannot log in: nothing that the server has decided
        refusal,  ///< the server refuses this client
    };
    virtual failure_kind kind_of_failure() const { return failure_kind::connection; }
    /// For messages: what the channel waits for, unless that is the handshake of TLS; or empty.
    virtual std::string awaits() const { return {}; }
    /// When read() has to be called, even if nothing happens.
    virtual boot_clock::time_point deadline() const { return boot_clock::time_point::max(); }
};

/// For one established connection. An exception ends the attempt to connect, and is reported as its reason.
/// @param descriptor non-blocking; outlives the channel, which does not close the descriptor
/// @param server as it was in the list when the connection began
using channel_maker = std::function<std::unique_ptr<secure_channel>(int descriptor, const server_address& server)>;

class transport_security {
public:
    virtual ~transport_security() = default;

    /// For the next connection. prepare() may call a user's function, which may use the whole public API: never call
    /// prepare() in the middle of a change. Exceptions are reported like those of channel_maker.
    virtual channel_maker prepare() const = 0;
};

}  // namespace zkasio::detail
