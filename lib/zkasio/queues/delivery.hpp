#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace zkasio {

namespace queue_detail {
class item_claim;
struct delivery_access;
}  // namespace queue_detail

/// An item of a work_queue that this process has claimed: no other consumer is given the item until the claim ends.
/// Move-only; the destructor gives the item back, in the background.
///
/// The claim is an ephemeral node: if the session ends, the item is given to another consumer. held() is false before
/// another consumer can be given the item, as far as a client can know, as with a lock_guard. Only done() and reject()
/// are proof: they remove the item if, and only if, this delivery still claims it. In some layouts, a consumer of
/// another library may take a claimed item, see queue_layout: done() and reject() then remove nothing.
///
/// *Lifetime*: until it is destroyed, the delivery keeps the client open, as a lock_guard does, and it must not outlive
/// the execution context of its client. May be used from any executor; held() from any thread. The awaitables of the
/// members may be awaited when the delivery is gone; done(), reject() and run() then fail with errc::lock_released. A
/// delivery that was made without arguments, or moved from, counts as given back.
class ZKASIO_EXPORT delivery {
public:
    delivery() noexcept = default;
    delivery(delivery&& other) noexcept;
    delivery& operator=(delivery&& other) noexcept;
    ~delivery();

    /// The data of the item.
    const std::string& item() const noexcept;
    /// The name of the item's node: the same for each delivery of the item.
    const std::string& name() const noexcept;
    /// How often consumers of this library have claimed the item: 1 for the first delivery. Also counts claims whose
    /// consumer was cancelled before it was given the item, and writes of other clients to the item. Always 1 for an
    /// item that is too large to be written again, see queue_layout.
    int attempt() const noexcept;
    /// Rises with every claim, over the whole ensemble, see fencing_token.
    fencing_token token() const noexcept { return guard_.token(); }

    /// Whether the claim stands, as far as this client can know.
    bool held() const noexcept { return guard_.held(); }
    /// loss_reason::none while nothing is wrong.
    loss_reason reason() const noexcept { return guard_.reason(); }
    /// *Completes when* the claim is lost, or has ended, with the reason.
    asio::awaitable<loss_reason> lost() const { return guard_.lost(); }

    /// Runs `body()`, a coroutine, until it ends, and returns its result. The item is neither done nor given back. If
    /// the claim is lost, the body receives a terminal cancellation; when the body has really ended, run() throws
    /// errc::lock_lost, in which an exception of the body that is more than a cancellation is nested, with
    /// error::outcome_unknown() as in lock_guard::run().
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_body, claim_);
    }

    /// Removes the item from the queue and applies `also`, together: the effects of the work that are in ZooKeeper
    /// happen exactly once.
    /// *Completes when* this is done. The delivery is over.
    /// *Fails with* errc::lock_lost if the claim is lost: the item may be given, or have been given, to another
    /// consumer; also if another client has written the item, or removed it in spite of the claim, see queue_layout.
    /// errc::lock_released if the delivery is over. errc::session_expired if the session ends while the request is
    /// under way. The error of a refused step of `also`: its index counts from the two steps of the queue, which
    /// precede `also`; the delivery is not over then. Nothing has been removed or applied in these cases, unless
    /// error::outcome_unknown() is true.
    /// *Cancellation*: see error::outcome_unknown().
    asio::awaitable<void> done(transaction also = transaction()) const;

    /// Gives the item back: it keeps its place in the queue. From the call on the delivery is over.
    /// *Completes when* another consumer may have the item; at once if the delivery was over.
    /// *Fails with* the servers' error if they refuse to remove the claim, which then ends with the session; after
    /// zk_errc::no_auth also as soon as the ACL allows it.
    /// *Cancellation*: ends the wait only.
    asio::awaitable<void> again();
    /// As again(), but later: this process keeps the claim for `pause`, or until its session ends. Completes at once.
    /// A session keeps at most 32 such claims of a queue. Further items are given back at once: they are not handed out
    /// by this client before the pause is over, and another process may be given them. After the pause, other processes
    /// are the first to be given the item: this one looks again after as long, at most 0.4 s.
    /// *Fails with* errc::invalid_argument for a negative pause.
    asio::awaitable<void> again(any_duration pause);

    /// Moves the item to the queue's dead items, see work_queue::dead().
    /// *Completes when* this is done. The delivery is over.
    /// *Fails with*, and *Cancellation*: as done(). errc::too_large: the item stays claimed, see queue_layout.
    /// @param reason for operators; its first 4096 bytes are kept.
    asio::awaitable<void> reject(std::string reason) const;

private:
    friend struct queue_detail::delivery_access;
    explicit delivery(std::shared_ptr<queue_detail::item_claim> claim, std::shared_ptr<const void> open);
    static asio::awaitable<void> run_body(std::function<asio::awaitable<void>()> body,
                                          std::shared_ptr<queue_detail::item_claim> claim);

    std::shared_ptr<queue_detail::item_claim> claim_;
    lock_guard guard_;
};

}  // namespace zkasio
