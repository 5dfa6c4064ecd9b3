#pragma once

#include <zkasio/detail/connection/sasl_login.hpp>
#include <zkasio/detail/connection/sasl_steps.hpp>
#include <zkasio/detail/seam/secure_channel.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zkasio::detail {

/// A channel that logs in by SASL before it lets the library's requests pass, over another channel. See sasl_login.
class sasl_channel final : public secure_channel {
public:
    sasl_channel(std::unique_ptr<secure_channel> below, std::shared_ptr<sasl_steps> steps, sasl_server with);
    ~sasl_channel() override { steps_->abandon(talk_); }

    /// That of the channel below, and the mechanism's first step.
    progress handshake() override;
    /// Logs in, as far as that is possible now; then reads.
    transfer read(std::span<char> to) override;
    transfer write(std::span<const char> from) override;
    std::string failure() const override;
    bool encrypts() const override { return below_->encrypts(); }
    failure_kind kind_of_failure() const override;
    std::string awaits() const override;
    boot_clock::time_point deadline() const override { return login_.deadline(); }

private:
    void make_step();
    progress wait_for_first_step();
    transfer log_in();
    progress send();
    progress ended_by(progress how);
    bool is_over() const noexcept { return login_.at() == sasl_login::stage::over; }
    // A session was opened for it.
    bool is_under_way() const noexcept {
        return login_.at() == sasl_login::stage::answer || login_.at() == sasl_login::stage::step;
    }
    bool has_failed() const noexcept { return login_.at() == sasl_login::stage::failed; }

    std::unique_ptr<secure_channel> below_;
    std::shared_ptr<sasl_steps> steps_;
    sasl_steps::talk_ptr talk_;
    sasl_login login_;
    bool below_is_open_ = false;
    bool hung_up_ = false;  // during the first step
    std::optional<std::string> challenge_;  // of a step that waits for an earlier connection's
    std::string kept_;                      // for the library, before anything else
    std::array<char, 4096> buffer_;
};

}  // namespace zkasio::detail
