#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

/// The seam to what encrypts connections, for the core itself links no OpenSSL: the component tls is behind it, and
/// fakes in unit tests. Only interfaces without a source of their own: a shared zkasio exports nothing of detail/.
namespace zkasio::detail {

/// Encrypts one connection. Nothing in it waits: what cannot go on says what it needs, and is called again when the
/// descriptor is ready for that.
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

    /// `done`: the peer has shown that it is the server it was taken for. Never `ended`: that is a failure here.
    virtual progress handshake() = 0;
    /// Bytes come with `done` only.
    virtual transfer read(std::span<char> to) = 0;
    /// After anything but `done` it is called again with the same bytes, and perhaps more behind them.
    virtual transfer write(std::span<const char> from) = 0;
    virtual std::string failure() const = 0;
};

/// For one connection, which stands. What it throws ends the attempt to connect, and is told as its reason.
/// @param descriptor non-blocking; it outlives the channel, which does not close it
/// @param host what the user calls the server, a name or an address
using channel_maker = std::function<std::unique_ptr<secure_channel>(int descriptor, const std::string& host)>;

class transport_security {
public:
    virtual ~transport_security() = default;

    /// For the next connection. It may call a function of the user's, which may do all that the public API offers:
    /// so not in the middle of anything. What it throws is told as channel_maker's is.
    virtual channel_maker prepare() const = 0;
};

}  // namespace zkasio::detail
