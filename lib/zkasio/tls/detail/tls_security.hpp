#pragma once

#include <zkasio/detail/seam/secure_channel.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <memory>
#include <string>
#include <utility>

namespace zkasio::detail {

/// The TLS of one client. From any thread.
class tls_security final : public transport_security {
public:
    explicit tls_security(tls_options o) : options_(std::move(o)) {}
    channel_maker prepare() const override;

private:
    tls_options options_;
};

}  // namespace zkasio::detail
