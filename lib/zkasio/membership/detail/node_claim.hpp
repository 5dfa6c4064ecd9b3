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

/// Which persistent_node of a session keeps the node at a path. The node itself tells only the session: two of one
/// session would each take the node for its own. On the client's strand.
class node_claim : public session_local {
public:
    void session_over(std::error_code) noexcept override { holder_.reset(); }

    /// *Completes when* no other persistent_node has the claim; waits for one that is leaving. If another one has the
    /// claim, and `wanted_by` is to leave, completes with null.
    /// *Fails with* errc::invalid_argument if another one has the claim, and is not leaving.
    static asio::awaitable<std::shared_ptr<node_claim>> get(session on, std::shared_ptr<node_board> wanted_by);
    void release(const node_board& by) noexcept;

private:
    std::weak_ptr<node_board> holder_;
    std::optional<one_shot_event> released_;
};

}  // namespace zkasio::membership_detail
