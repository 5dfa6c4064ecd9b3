#pragma once

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/connection/answer_order.hpp>
#include <zkasio/detail/seam/secure_channel.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace zkasio::detail {

/// Leads one connection of a library that knows nothing of encryption, or of SASL, through a secure_channel: the
/// library's descriptor becomes one end of a socket pair, and this copies between the other end and the network.
///
/// The tunnel has no task and waits for nothing: the library's driver calls receive() before the library and send()
/// after it, and waits for descriptor() instead of the library's. Two rules keep data from being forgotten for ever:
/// - after receive() the library reads until it finds nothing, and receive() is called again while holds_back(): data
///   that has left the network brings no further event;
/// - send() follows each call that may have made the library write.
///
/// No byte of the library's leaves before the handshake is over. A server whose answers are not in order is hung up on
/// before the library reads those.
class tunnel {
public:
    enum class stage { connecting, handshake, open };

    /// Replaces the socket behind `descriptor`, which has begun to connect, and keeps that socket. Throws
    /// std::system_error.
    static std::unique_ptr<tunnel> behind(int descriptor, server_address server);

    /// The connection is established, and waits for secure().
    bool is_to_be_secured() const noexcept;
    void secure(channel_maker make) { make_channel_ = std::move(make); }

    /// Connects, shakes hands, and then copies from the network to the library: all that is possible now.
    void receive();
    /// From the library to the network. An end that this finds is reported by the next receive(), which is made due.
    void send();

    /// The network's descriptor. Always to be awaited for reading.
    int descriptor() const noexcept { return network_.get(); }
    bool wants_write() const noexcept {
        if (receiving_over_) return false;
        return stage_ == stage::connecting || needs_output_ || (!outgoing_.empty() && !sending_over_);
    }
    /// There is input that the library has to make room for.
    bool holds_back() const noexcept { return !incoming_.empty(); }
    stage at() const noexcept { return stage_; }
    /// The network gives nothing more. The library has to read the rest before it writes.
    bool has_ended() const noexcept { return receiving_over_; }
    /// Never empty when the tunnel has ended before it was open. Empty while the tunnel lives, and when the peer has
    /// only closed the connection after the handshake.
    const std::string& failure() const noexcept { return failure_; }
    /// Null before the connection is established.
    const secure_channel* channel() const noexcept { return channel_.get(); }

private:
    using buffer = std::array<char, 16 * 1024>;  // a record of TLS

    tunnel(owned_descriptor network, owned_descriptor inner, server_address server);
    void connect();
    void shake_hands();
    void read();
    bool deliver();
    void end(std::string why);

    owned_descriptor network_, inner_;
    channel_maker make_channel_;
    server_address server_;
    std::unique_ptr<secure_channel> channel_;
    stage stage_ = stage::connecting;
    bool needs_output_ = false;  // the handshake, or a read, waits for output
    bool dry_ = false;           // nothing more from the network now
    bool receiving_over_ = false, told_ = false, sending_over_ = false;
    std::string failure_, sending_failure_;
    answer_order order_;
    buffer incoming_buffer_, outgoing_buffer_;
    std::span<const char> incoming_, outgoing_;  // the unprocessed rest of the two buffers
};

}  // namespace zkasio::detail
