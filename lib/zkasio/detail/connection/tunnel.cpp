#include <zkasio/detail/connection/tunnel.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace zkasio::detail {
namespace {

[[noreturn]] void no_tunnel(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::unique_ptr<tunnel> tunnel::behind(int descriptor, server_address server) {
    std::array<int, 2> pair{-1, -1};
    owned_descriptor network(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (network.get() < 0) no_tunnel("fcntl");
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
        no_tunnel("socketpair");
    owned_descriptor inner(pair[0]);
    const owned_descriptor librarys(pair[1]);
    std::unique_ptr<tunnel> made(new tunnel(std::move(network), std::move(inner), std::move(server)));
    if (::dup3(librarys.get(), descriptor, O_CLOEXEC) < 0) no_tunnel("dup3");
    return made;
}

tunnel::tunnel(owned_descriptor network, owned_descriptor inner, server_address server)
    : network_(std::move(network)), inner_(std::move(inner)), server_(std::move(server)) {}

bool tunnel::is_to_be_secured() const noexcept {
    if (stage_ != stage::connecting || receiving_over_ || make_channel_) return false;
    pollfd connected{network_.get(), POLLOUT, 0};
    return ::poll(&connected, 1, 0) > 0 && (connected.revents & POLLERR) == 0;
}

// ------------------------------------------------------------------------------------------- network to library

void tunnel::receive() {
    if (stage_ == stage::connecting && !receiving_over_) connect();
    if (stage_ == stage::handshake && !receiving_over_) shake_hands();
    if (stage_ == stage::open) {
        dry_ = false;
        while (deliver() && !dry_ && !receiving_over_) read();
    }
    // After all received data. shutdown() and not close(): close() would be a reset if the library has written since.
    if (receiving_over_ && incoming_.empty() && !std::exchange(told_, true)) ::shutdown(inner_.get(), SHUT_RDWR);
}

void tunnel::connect() {
    pollfd connected{network_.get(), POLLOUT, 0};
    if (::poll(&connected, 1, 0) <= 0) return;
    int code = 0;
    socklen_t size = sizeof code;
    ::getsockopt(network_.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) return end(std::generic_category().message(code));
    if (!make_channel_) return;
    try {
        channel_ = make_channel_(network_.get(), server_);
    } catch (const std::exception& e) {
        return end(e.what());
    }
    stage_ = stage::handshake;
}

void tunnel::shake_hands() {
    const secure_channel::progress p = channel_->handshake();
    needs_output_ = p == secure_channel::progress::needs_output;
    if (p == secure_channel::progress::done) stage_ = stage::open;
    if (p == secure_channel::progress::failed || p == secure_channel::progress::ended) end(channel_->failure());
}

// Servers encrypt each answer separately: all answers that have come are gathered.
void tunnel::read() {
    std::size_t filled = 0;
    secure_channel::progress how = secure_channel::progress::done;
    while (how == secure_channel::progress::done && filled < incoming_buffer_.size()) {
        const secure_channel::transfer t = channel_->read(std::span(incoming_buffer_).subspan(filled));
        how = t.how;
        filled += t.bytes;
    }
    incoming_ = std::span<const char>(incoming_buffer_).first(filled);
    needs_output_ = how == secure_channel::progress::needs_output;
    dry_ = how != secure_channel::progress::done;
    if (how == secure_channel::progress::ended) end(sending_failure_);
    if (how == secure_channel::progress::failed) end(channel_->failure());
    const answer_order::verdict seen = order_.received(incoming_);
    if (seen.wrong) {
        incoming_ = incoming_.first(seen.good);
        end(seen.wrong);
    }
}

// Whether all incoming data was delivered.
bool tunnel::deliver() {
    while (!incoming_.empty()) {
        const ssize_t n = ::send(inner_.get(), incoming_.data(), incoming_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {  // the library has closed its end
            incoming_ = {};
            receiving_over_ = true;
            return false;
        }
        incoming_ = incoming_.subspan(static_cast<std::size_t>(n));
    }
    return true;
}

void tunnel::end(std::string why) {
    failure_ = why.empty() && stage_ != stage::open ? "TLS: failed, without a reason" : std::move(why);
    receiving_over_ = true;
    needs_output_ = false;
}

// ------------------------------------------------------------------------------------------- library to network

void tunnel::send() {
    if (stage_ != stage::open || sending_over_ || receiving_over_) return;
    for (bool more = true; more || !outgoing_.empty();) {
        if (outgoing_.empty()) {
            const ssize_t n = ::recv(inner_.get(), outgoing_buffer_.data(), outgoing_buffer_.size(), MSG_DONTWAIT);
            if (n <= 0) return;
            outgoing_ = std::span<const char>(outgoing_buffer_).first(static_cast<std::size_t>(n));
            order_.sent(outgoing_);
            more = outgoing_.size() == outgoing_buffer_.size();  // the library does not write during send()
        }
        const auto [how, bytes] = channel_->write(outgoing_);
        if (how == secure_channel::progress::failed || how == secure_channel::progress::ended) {
            // The reason may still be unread: a server that refuses this client says so before it hangs up.
            sending_over_ = true;
            sending_failure_ = channel_->failure();
            ::shutdown(network_.get(), SHUT_RDWR);
            return;
        }
        if (how != secure_channel::progress::done) return;
        outgoing_ = outgoing_.subspan(bytes);
    }
}

}  // namespace zkasio::detail
