#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/loss_reason.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio {

namespace barrier_detail {
class barrier_member;
}

/// A member inside a double_barrier. Move-only; the destructor leaves, in the background.
///
/// *On session loss* the member is no longer inside: the other members do not wait for it, and it does not know when
/// they leave. held() is false before the servers can have given the member up, as far as a client can know.
///
/// *Lifetime*: until it has left, the entry keeps the client open, as a lock_guard does. It must not outlive the
/// execution context of its client. May be used from any executor; `held()` and `reason()` from any thread. The
/// coroutines of the members may be awaited when the object is gone. An entry that was made without arguments, or moved
/// from, counts as left.
class ZKASIO_EXPORT barrier_entry {
public:
    barrier_entry() noexcept = default;
    barrier_entry(barrier_entry&& other) noexcept = default;
    barrier_entry& operator=(barrier_entry&& other) noexcept;
    ~barrier_entry() { begin_to_leave(); }

    /// Whether the member is inside: it has not begun to leave, its session lives, and its node exists.
    bool held() const noexcept;
    /// loss_reason::none while the member is inside, loss_reason::released when it has begun to leave.
    loss_reason reason() const noexcept;
    /// *Completes when* the member is no longer inside, with the reason.
    asio::awaitable<loss_reason> lost() const;

    /// Leaves. From the call on, held() is false. A second call waits for the same end.
    /// *Completes when* all members that were inside at the beginning of the call have left, or are gone with their
    /// sessions. (A member that enters in the meantime, for the next round, is not waited for.) At once for an entry
    /// that was made without arguments or moved from.
    /// *Fails with* errc::session_expired when the session of this member ends first, or has ended: its node is gone
    /// then, and whether the others have left is unknown; with errc::client_closed, errc::forked; and with
    /// zk_errc::no_auth and other answers of the servers to the removal of a node. (After zk_errc::no_auth the node of
    /// this member is removed as soon as the ACL allows it.) An outage that the session survives does not end the wait.
    /// *Cancellation*: ends the wait; the member goes on leaving, in the background.
    asio::awaitable<void> leave();

    /// Path of the member's node; "" for an empty entry.
    const std::string& path() const noexcept;

private:
    friend class double_barrier;
    barrier_entry(std::shared_ptr<barrier_detail::barrier_member> member, std::shared_ptr<const void> open) noexcept;
    void begin_to_leave() noexcept;

    std::shared_ptr<const void> open_;  // first, so destroyed last
    std::shared_ptr<barrier_detail::barrier_member> member_;
};

class ZKASIO_EXPORT double_barrier_options {
public:
    double_barrier_options() {}
    /// Refuses a member (errc::too_many_members) while as many others as begin a round are there, also if these have
    /// begun their round. (By default, as with Curator, a member that comes late joins the round under way.) A member
    /// that was killed counts until its session ends. Members that do not have this option, also of other libraries,
    /// are not refused.
    double_barrier_options& exactly(bool on = true) {
        exactly_ = on;
        return *this;
    }
    /// Written into the member's node, for operators to read: a host name, say.
    double_barrier_options& data(bytes d) {
        data_ = std::move(d).take();
        return *this;
    }
    /// The ACL of all nodes that are created (client_options::default_acl()). Must let all members read, write and
    /// remove them.
    double_barrier_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }

    bool is_exact() const noexcept { return exactly_; }
    const std::string& data() const noexcept { return data_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    bool exactly_ = false;
    std::string data_;
    zkasio::acl acl_ = default_acl();
};

/// Lets a number of members, in any processes, begin together and end together: enter() waits until as many have come,
/// barrier_entry::leave() until all have left. Then the next round can begin.
///
/// Layout and algorithm are those of Curator's DistributedDoubleBarrier and kazoo's DoubleBarrier, and members of all
/// three may meet: each member is an ephemeral node of the directory `<path>`, and `<path>/ready`, a persistent node,
/// exists from the moment in which enough members have come until the last one leaves.
///
///   - A member counts as long as its session lives: a member that is killed inside is waited for until its session
///     ends, and no longer. A far member holds up a round by its own round trips.
///   - A member that comes while a round is under way joins it, also beyond the number, but see
///     double_barrier_options::exactly(). If all members of a round are killed, the next member removes the `ready`
///     that they leave behind, and waits for others. (Members of Curator and kazoo pass it.)
///   - Each enter() is another member: the same object may enter several times, from any number of coroutines.
///
/// May be used from any executor. Copies name the same barrier. The awaitables of the members may be awaited when the
/// object is gone. A moved-from double_barrier fails with errc::invalid_argument.
class ZKASIO_EXPORT double_barrier {
public:
    /// @param path a directory of its own; created as a container when it is missing. @param members how many begin a
    /// round; the same for all who name the path. Throws errc::invalid_path, and errc::invalid_argument for 0.
    double_barrier(client zk, std::string path, std::size_t members,
                   double_barrier_options options = double_barrier_options());

    /// *Completes when* enough members were there at the same time, this one among them, or when this member has joined
    /// a round that is under way. An outage that the session survives does not end the wait. For a limit see
    /// timeout.hpp.
    /// *Fails with* errc::not_connected when there is no connection at first, for client_options::connection_timeout;
    /// errc::session_expired when the session ends while it waits; errc::too_many_members, see
    /// double_barrier_options::exactly(); and as operations::create().
    /// *Cancellation*: as after a failure, the member's node is removed in the background, and the member no longer
    /// counts. If the others had counted it, they may have begun without it.
    asio::awaitable<barrier_entry> enter() const;

    /// Enters, runs `body(entry)`, a coroutine, leaves, and returns the result of the body when all have left. If the
    /// session is lost while the body runs, the body receives a terminal cancellation; when the body has really ended,
    /// run() throws errc::lock_lost, in which an exception of the body that is more than a cancellation is nested
    /// (std::nested_exception), with error::outcome_unknown() as in lock_guard::run(). If the body throws, the member
    /// leaves in the background. A body may call leave().
    /// *Fails with* the errors of enter() and barrier_entry::leave(), errc::lock_lost, and the exception of the body.
    /// *Cancellation* is passed on to the body. A cancellation that comes while the member leaves ends the wait: the
    /// result of the body is lost.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, barrier_entry&>> run(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_inside, *this);
    }

    const std::string& path() const noexcept { return path_; }

private:
    static asio::awaitable<barrier_entry> enter_in_session(double_barrier self);
    static asio::awaitable<barrier_entry> enter_as(double_barrier self);
    static asio::awaitable<void> run_inside(std::function<asio::awaitable<void>(barrier_entry&)> body,
                                            double_barrier self);

    client zk_;
    std::string path_;
    std::size_t members_;
    double_barrier_options options_;
};

}  // namespace zkasio
