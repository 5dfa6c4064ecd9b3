#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/membership/detail/node_board.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace zkasio::membership_detail {

/// Which persistent_node of a session keeps the node at some path. Two of one session cannot tell by the node whose it
/// is: each would take it for its own. On the client's strand.
class node_claim : public session_local {
public:
    void session_over(std::error_code) noexcept override { holder_.reset(); }

    /// *Completes when* nobody else has it; until then waits for one that is leaving. With null when somebody else has
    /// it and `wanted_by` is to leave. *Fails with* errc::invalid_argument if somebody has it who stays.
    static asio::awaitable<std::shared_ptr<node_claim>> get(session on, std::shared_ptr<node_board> wanted_by);
    void release(const node_board& by) noexcept;

private:
    std::weak_ptr<node_board> holder_;
    std::optional<one_shot_event> released_;
};

}  // namespace zkasio::membership_detail
