#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/barriers/detail/double_barrier_step.hpp>
#include <zkasio/client.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::barrier_detail {

/// The options that all members of a double barrier share, and those of this member's nodes.
struct barrier_spec {
    barrier_spec() {}  // user-provided: see coroutine_safety.hpp
    std::string path;
    std::size_t members = 0;
    bool exactly = false;
    std::string data;
    acl entries;
};

/// One member of a double barrier, in one session: from before its node is created until it has left.
class barrier_member : public std::enable_shared_from_this<barrier_member> {
public:
    barrier_member(session on, barrier_spec spec);

    /// *Completes when* the member may pass and its hold is confirmed: true; or when the hold was lost in the meantime,
    /// in a session that lives: false.
    /// *Cancellation*, failures and false: the node stays; see begin_to_withdraw().
    /// @param events of the client, since before the call.
    asio::awaitable<bool> passed(session_events events);

    /// A member that has not passed gives up, in the background.
    static void begin_to_withdraw(std::shared_ptr<barrier_member> self) noexcept;

    /// The member leaves, in the background: held() is false from now on. From any thread; only the first call has an
    /// effect.
    static void begin_to_leave(std::shared_ptr<barrier_member> self) noexcept;
    /// *Completes when* the member has left, and all that were inside have.
    static asio::awaitable<void> until_left(std::shared_ptr<barrier_member> self);

    const session_hold& hold() const noexcept { return hold_; }
    const std::string& path() const noexcept { return own_; }

private:
    void take_name();
    asio::awaitable<void> create_directory();
    asio::awaitable<bool> create_own();
    asio::awaitable<bool> create_ready();
    asio::awaitable<bool> join(std::string other);
    asio::awaitable<enter_step> read_and_decide(enter_view& seen);
    void remove_orphans() const;
    asio::awaitable<void> until_ready(session_events events);
    static asio::awaitable<void> withdraw(std::shared_ptr<barrier_member> self);
    static asio::awaitable<void> leave_in_background(std::shared_ptr<barrier_member> self);
    struct round_members;
    asio::awaitable<round_members> who_is_inside();
    asio::awaitable<std::optional<watch>> inside_and_watch(std::string member, round_members& round);
    asio::awaitable<void> leave_no_ready();
    asio::awaitable<void> leave();
    asio::awaitable<void> remove_own(bool with_ready);

    const session session_, on_;  // on_ is session_.patient()
    const barrier_spec spec_;
    const std::string ready_;
    std::string name_, own_;             // name and path of the node, from before its create on
    std::optional<std::int64_t> round_;  // czxid of `ready` when the member had passed, if it was still there
    session_hold hold_;                  // made when the member passes
    std::atomic<bool> leaving_{false};
    const one_shot_event left_;
    std::exception_ptr failed_;  // written before `left_` is fired
};

}  // namespace zkasio::barrier_detail
