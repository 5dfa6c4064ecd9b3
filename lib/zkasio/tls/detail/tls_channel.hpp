#pragma once

#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/tls/detail/socket_bio.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace zkasio::detail {

/// One connection through OpenSSL. Sends no close_notify when the connection ends: ZooKeeper's servers do not wait for
/// one, and end a session by ZooKeeper's own protocol.
class tls_channel final : public secure_channel {
public:
    /// Throws std::runtime_error.
    tls_channel(int descriptor, tls_options::context_ptr context, const std::string& name, tls_verification v);

    progress handshake() override;
    transfer read(std::span<char> to) override;
    transfer write(std::span<const char> from) override;
    std::string failure() const override { return failure_; }

private:
    struct deleter {
        void operator()(SSL* s) const noexcept;
    };
    void expect(const std::string& name);
    progress after(int result);
    progress whom_it_is_with();
    std::string reason() const;
    std::string hint(int why) const;
    std::string unverified(long result) const;

    tls_options::context_ptr context_;  // kept: OpenSSL counts references to its own part, but Asio frees the rest
    socket_end end_;
    std::unique_ptr<SSL, deleter> ssl_;
    std::string expected_name_, failure_;
    bool verified_ = true;
};

}  // namespace zkasio::detail
