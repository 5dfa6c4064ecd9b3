#pragma once

#include <zkasio/detail/seam/secure_channel.hpp>

#include <span>
#include <string>

namespace zkasio::detail {

/// A connection without encryption, for a tunnel that is needed for another reason.
class plain_channel : public secure_channel {
public:
    explicit plain_channel(int descriptor) noexcept : descriptor_(descriptor) {}

    progress handshake() override { return progress::done; }
    transfer read(std::span<char> to) override;
    transfer write(std::span<const char> from) override;
    std::string failure() const override { return failure_; }
    bool encrypts() const override { return false; }

private:
    progress after_failure(progress otherwise);

    int descriptor_;
    std::string failure_;
};

}  // namespace zkasio::detail
