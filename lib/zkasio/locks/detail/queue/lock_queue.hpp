#pragma once

#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/detail/queue/followed_nodes.hpp>
#include <zkasio/locks/detail/queue/next_step.hpp>
#include <zkasio/locks/detail/queue/node_creation.hpp>
#include <zkasio/locks/detail/queue/position_reports.hpp>
#include <zkasio/locks/detail/queue/queue_order.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::lock_detail {

/// The contenders of one session for one lock: their nodes, their order, and what the first waiting contender (the
/// head) waits for.
///
/// Lives on the client's strand. Every event ends in reconsider(), which collects the situation, asks
/// decide_next_step() and carries out the step. queue_order has the knowledge of the queue. The parts send requests of
/// their own and report the results. The rules that keep a lock from having two owners are G1, G2 ... in
/// docs/lock-queue.md.
class lock_queue final : public session_local, public std::enable_shared_from_this<lock_queue> {
public:
    lock_queue(session on, lock_spec_ptr lock);

    /// The session's queue for the directory and the names of `lock`. On the strand.
    static std::shared_ptr<lock_queue> of(const session& on, const lock_spec_ptr& lock);

    // -------------------------------------------------------------------------------------------- for queue_claim
    /// @param from the executor of the contender's coroutine.
    void enter(const contender_ptr& c, const asio::any_io_executor& from);
    /// Ends this contender at any stage: a waiter's node is removed, an owner's lock is handed over or released. If an
    /// owner has already given back a lost lock, no contender waits for its bodies any longer.
    void leave(const contender_ptr& c);
    /// A body under the lock of `c` has ended.
    void body_ended(const contender_ptr& c);
    /// Sends the create of a contender's node. While bodies under lost locks exclude the contender, it waits for these
    /// first (G40).
    void create_node(const contender_ptr& c);
    /// Whether the work under this lock, which runs on `from`, asks for the lock again.
    bool waits_for_itself(lock_kind kind, const asio::any_io_executor& from) const;
    /// Replaces the owner `from` by `to`, which shares the lock, at the same place.
    void downgrade(const contender_ptr& from, const contender_ptr& to);

    // ------------------------------------------------------------------------------------------- for the session
    void session_over(std::error_code why) noexcept override;
    bool waits() noexcept override;
    void loop_over() noexcept override;

    // --------------------------------------------------------------------------------------------- for its parts
    const session& on() const noexcept { return on_; }
    const toolbox& tools() const noexcept { return tools_; }
    const std::string& directory() const noexcept { return lock_->directory; }
    const queue_names& names() const noexcept { return lock_->names; }
    queue_order& order() noexcept { return order_; }
    node_creation& creation() noexcept { return creation_; }
    bool over() const noexcept { return bool(over_); }
    /// The error of an operation whose session is over; each call creates a new exception.
    std::exception_ptr ended(std::string_view operation, const std::string& path) const;

    void go_to(const contender_ptr& c, stage next);
    /// `c` has got a node, and takes its place. If `c` was given up before, the node is removed instead.
    void node_created(const contender_ptr& c, const created& node);
    /// `c` gets no place in the queue, or loses the one that it has.
    void refuse_beside_owner(const contender_ptr& c);
    void refuse(const contender_ptr& c);
    void fail(const contender_ptr& c, std::exception_ptr why);
    void fail_waiting(std::exception_ptr why);
    /// Whether one contender of this session is entering, and no other one is in the queue or entering.
    bool only_one_entering() const noexcept { return order_.empty() && entering_ == 1; }
    /// The session's first owner, if both it and the newcomer are readers; otherwise null.
    contender_ptr reader_joined_by(lock_kind newcomer) const;

    void ask_for_listing();
    void listed(const std::vector<std::string>& names, std::uint64_t number);
    void listing_failed(const std::exception_ptr& why);
    void followed_gone(const std::string& name);
    /// A node whose name is `prefix` and a number may turn out to be ours: until stop_expecting_node() no contender
    /// follows that node (G17).
    void expect_node(std::string prefix) { expected_nodes_.insert(std::move(prefix)); }
    void stop_expecting_node(const std::string& prefix) { expected_nodes_.erase(prefix); }
    /// Decides on the next steps in the current situation, and carries them out.
    void reconsider();

private:
    // Deciding: lock_queue.cpp
    /// G40: whether `claim(owner)` holds for an owner that has lost the lock, excludes a newcomer, and has running
    /// bodies.
    template <class Claim>
    bool any_unfinished_excludes(lock_kind newcomer, Claim claim) const {
        return std::any_of(unfinished_.begin(), unfinished_.end(), [&](const contender_ptr& owner) {
            return (newcomer == lock_kind::exclusive || owner->asked.kind == lock_kind::exclusive) && claim(*owner);
        });
    }
    bool waits_for_body(lock_kind newcomer) const {
        return any_unfinished_excludes(newcomer, [](const contender&) { return true; });
    }
    /// G40: whether the newcomer waits for bodies, and all these run under locks whose nodes are gone.
    bool waits_only_for_bodies(lock_kind newcomer) const;
    queue_situation situation() const;
    bool may_be_ours(const std::string& name) const;
    bool carry_out(const next_step& step, const contender_ptr& head);
    void refuse_try_acquires();
    void remove_orphans();
    void start_lease(const contender_ptr& c);
    void become_owner(const contender_ptr& c);
    void hold_lost(const contender_ptr& c, loss_reason why);
    void decide(const contender_ptr& c, acquire_outcome how, std::exception_ptr why = nullptr);
    void deleted(const contender_ptr& c);
    void lose_node(const contender_ptr& owner);

    // Leaving, and handing over: lock_queue_leave.cpp
    void give_back_soon(const contender_ptr& c);
    void give_back(const contender_ptr& c);
    void stop_waiting_for_bodies(const contender_ptr& c);
    void give_place_up(const contender_ptr& c);
    void queue_again_after_bodies();
    void release(const contender_ptr& c);
    std::vector<contender_ptr> grant_to_successors();
    void remove(const contender_ptr& c, const std::vector<contender_ptr>& successors = {});
    void removal_answered(const contender_ptr& c, const pending_removal& removal,
                          const std::vector<contender_ptr>& successors);
    void removed(const contender_ptr& c, const std::vector<contender_ptr>& successors, bool found,
                 const std::exception_ptr& no_session);
    static std::vector<contender_ptr> still_relying_on(std::vector<contender_ptr> successors);
    void confirm(const std::vector<contender_ptr>& successors, const std::exception_ptr& no_session);

    // Telling users of waits that may be mistakes: lock_queue.cpp
    contender_ptr guard_in_the_way(boot_clock::time_point since_at_least) const;
    void warn_later();
    void warn();

    // A writer becomes a reader: lock_queue_leave.cpp
    static asio::awaitable<void> replace_writer(std::shared_ptr<lock_queue> self, contender_ptr from, contender_ptr to);
    void writer_replaced(const contender_ptr& from, const contender_ptr& to, created node);
    void not_replaced(const contender_ptr& from, const contender_ptr& to, const std::exception_ptr& failed);
    asio::awaitable<std::optional<created>> create_node_instead_of(contender_ptr from, contender_ptr to);
    std::exception_ptr ended_while_held(std::string_view operation, const std::string& path) const;

    session on_;
    toolbox tools_;       // toolbox(on_)
    lock_spec_ptr lock_;  // the first contender's: all have the same directory and names
    queue_order order_;
    std::error_code over_;

    node_creation creation_;
    queue_listing listing_;
    followed_nodes followed_;
    position_reports positions_;

    std::size_t entering_ = 0;
    std::set<std::string> expected_nodes_;
    std::vector<contender_ptr> unfinished_;  // have given back a lost lock under which bodies still run
    std::vector<contender_ptr> displaced_;   // stage::waiting_for_bodies, in the order in which they queue again
    // The waiting contenders that give up if they have to wait (if_contended::give_up). Kept apart from the other
    // waiting contenders, of which there may be very many: most events do not concern those.
    std::map<queue_key, contender_ptr> try_acquires_;

    bool orphans_sought_ = false;  // G41
    std::optional<asio::steady_timer> warning_timer_;  // set: the next look at what is to be warned of
    bool warned_of_guard_ = false, warned_of_bodies_ = false;
    boot_clock::time_point unfinished_since_{};  // the latest of `unfinished_`
};

}  // namespace zkasio::lock_detail
