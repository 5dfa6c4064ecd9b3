#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/sasl_mechanism.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio::detail {

/// The login of one connection by SASL, between the request for a session and all other requests. Pure: bytes, steps
/// and times in, bytes and challenges out.
///
///     first_step -> session -> answer <-> step -> over
///
/// - The mechanism's first step precedes everything: no session waits for a KDC that does not answer, and none is
///   opened for a client that has nothing to show.
/// - The answer to the request for a session is kept back until the login is over: without it the library sends
///   nothing. A server that opens no session, or is no ZooKeeper server, has no login: its bytes pass.
/// - The server counts the session's time from the request on. The login ends within half of that, or fails: so there
///   is time for the library's first heartbeat.
///
/// Failures never contain a token, or anything else that the server has sent.
class sasl_login {
public:
    using time_point = boot_clock::time_point;
    enum class stage {
        first_step,  ///< the mechanism makes its first token; nothing was sent
        session,     ///< the request for a session may pass, and its answer is awaited
        answer,      ///< a token is sent, and the server's answer awaited
        step,        ///< the mechanism answers a challenge
        over,        ///< everything passes, take_kept() first
        failed,
    };
    /// More than any mechanism's token has. Answers are read as a whole.
    static constexpr std::size_t largest_token = 128 << 10;
    static constexpr int most_steps = 20;
    static constexpr const char* out_of_step = "SASL: the server's answers are out of step with the login";

    stage at() const noexcept { return at_; }
    /// Only of a login that has failed.
    const std::string& failure() const noexcept { return failure_; }
    /// The server has refused this client.
    bool is_refused() const noexcept { return is_refused_; }

    // ----------------------------------------------------------------------------------------------- the mechanism
    /// The challenge of the step that is to be made now: once for each step.
    std::optional<std::string> take_challenge() { return std::exchange(challenge_, std::nullopt); }
    void stepped(sasl_step made);
    void fail(std::string why);

    // ------------------------------------------------------------------------------------------------ to the server
    /// How many bytes of the library may pass now. None may before the login is over, but the request for a session.
    std::size_t may_pass() const noexcept;
    /// These bytes of the library leave.
    void passing(std::span<const char> bytes, time_point now);
    /// The login's own bytes.
    std::string_view outgoing() const noexcept { return outgoing_; }
    void sent(std::size_t bytes) { outgoing_.erase(0, bytes); }

    // ---------------------------------------------------------------------------------------------- from the server
    void received(std::span<const char> bytes);
    /// Of a login that is over: what the server has sent to the library.
    std::string take_kept() { return std::exchange(kept_, {}); }

    // -------------------------------------------------------------------------------------------------------- time
    /// When the login fails, if it is not over.
    time_point deadline() const noexcept;
    void check_time(time_point now);

private:
    bool read_session();
    bool read_answer();
    void refuse(const char* how);
    void challenged(std::string token);
    void send(sasl_step made);
    void end();
    std::size_t request_size() const noexcept;

    stage at_ = stage::first_step;
    std::optional<std::string> challenge_{std::in_place};
    std::optional<sasl_step> first_;  // its token is sent behind the request for a session
    std::array<char, 4> request_head_{};
    std::size_t request_sent_ = 0;  // bytes of the request for a session
    time_point requested_at_{};
    time_point deadline_ = time_point::max();
    std::string incoming_, outgoing_, kept_, failure_;
    std::int32_t number_ = 0;  // of the last token
    bool is_last_ = false, is_refused_ = false;
};

}  // namespace zkasio::detail
