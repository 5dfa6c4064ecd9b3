#pragma once

#include <zkasio/locks/detail/contender.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue_order.hpp>
#include <zkasio/locks/queue_position.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

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

/// The contenders of one session for one lock: their nodes, who is next, and what the head of them waits for.
///
/// A state machine on the client's strand; whatever happens ends in reconsider(), which looks at all there is and does what
/// is missing. The decisions are queue_order's.
///
/// Local hand-off: when an owner leaves and the next in sequence is ours too, that one owns the lock as soon as the removal of
/// the owner's node is under way: requests of a session are served in order, and nobody stands between the two. The
/// removal is a transaction that checks that the successor's node exists: if somebody has deleted that one while it was
/// waiting, the old node stays, nobody else is let in, and the successor is told that it has lost the lock.
class lock_queue final : public session_local, public std::enable_shared_from_this<lock_queue> {
public:
    lock_queue(session on, std::string directory, queue_names names)
        : on_(std::move(on)), directory_(std::move(directory)), names_(std::move(names)), order_(names_),
          before_looking_(on_.make_back_off()), before_following_(on_.make_back_off()), before_creating_(on_.make_back_off()) {}

    /// The one for this directory and these names. On the strand.
    static std::shared_ptr<lock_queue> of(const session& on, const lock_spec& lock);

    // On the strand.
    /// @param from where the contender's coroutine runs.
    void enter(const contender_ptr& c, const asio::any_io_executor& from);
    /// The same for one that has its node already.
    void adopt(const contender_ptr& c, const std::string& path, const asio::any_io_executor& from);
    /// Whatever its state: withdraws, or releases.
    void leave(const contender_ptr& c);
    /// The owner `from` goes on as `to`, which shares the lock, at the same place.
    void downgrade(const contender_ptr& from, const contender_ptr& to);
    void session_over(std::error_code why) noexcept override;
    void loop_over() noexcept override;

private:
    struct lost_create {
        contender_ptr who;
        std::string id;
    };
    void begin_create(const contender_ptr& c);
    void create_unless(const contender_ptr& c, std::exception_ptr failed);
    contender_ptr joined_by(lock_kind newcomer) const;
    bool waits_for_itself(lock_kind kind, const asio::any_io_executor& from) const;
    std::exception_ptr itself() const;
    std::exception_ptr ended(std::string_view operation, const std::string& path) const;
    std::exception_ptr ended_while_held(std::string_view operation, const std::string& path) const;
    void go_to(const contender_ptr& c, stage next);
    void creation_answered(const contender_ptr& c);
    void entered(const contender_ptr& c, const created& node);
    void want_parent(const contender_ptr& c);
    static asio::awaitable<void> make_parent(std::shared_ptr<lock_queue> self, zkasio::acl entries);
    void create_later(const contender_ptr& c);
    void begin_search(const contender_ptr& c, std::string id);
    static asio::awaitable<void> search(std::shared_ptr<lock_queue> self);
    asio::awaitable<bool> search_once();
    void search_ended(const lost_create& l, std::optional<created> found, const std::exception_ptr& failed);
    static asio::awaitable<void> join_readers(std::shared_ptr<lock_queue> self, contender_ptr c);
    static asio::awaitable<void> go_on_as(std::shared_ptr<lock_queue> self, contender_ptr from, contender_ptr to);
    asio::awaitable<bool> try_to_join(contender_ptr c);
    asio::awaitable<std::optional<created>> create_joined(contender_ptr c, std::string reader, bool replace);
    asio::awaitable<std::optional<created>> create_joined_at(std::string path, lock_spec_ptr as, std::string reader, bool replace);
    void entered_as_owner(const contender_ptr& c, const created& node);

    void release(const contender_ptr& c);
    void remove(const contender_ptr& c, const std::vector<contender_ptr>& checked);
    void removal_answered(const contender_ptr& c, const pending_removal& removal, const std::vector<contender_ptr>& checked);
    static std::vector<contender_ptr> still_relying_on(std::vector<contender_ptr> heirs);
    void end_inheritance(const std::vector<contender_ptr>& heirs, const std::exception_ptr& failed);

    void reconsider();
    bool arriving(const std::string& name) const;
    bool refuse_impatient();
    void prepare(const contender_ptr& head, bool next_in_line);
    void look();
    void looked(const pending_children& listing, std::uint64_t number);
    void look_later();
    void follow(const std::string& name);
    void stop_following();
    void arm(const std::shared_ptr<pending_watched_data>& asked, std::uint64_t round);
    void follow_later(std::uint64_t round);
    void predecessor_gone(const std::string& name);
    void vanished(const contender_ptr& c);
    void start_lease(const contender_ptr& c);
    void become_owner(const contender_ptr& c);
    void lose_node(const contender_ptr& owner);
    void refuse(const contender_ptr& c, acquire_outcome how = acquire_outcome::refused, std::exception_ptr why = nullptr);
    void fail(const contender_ptr& c, std::exception_ptr why);
    void decide(const contender_ptr& c, acquire_outcome how, std::exception_ptr why = nullptr);
    void fail_waiting(const std::exception_ptr& why);
    void tell_observers();
    void tell(const std::shared_ptr<observation>& observed, const queue_position& position) noexcept;

    session on_;
    std::string directory_;
    queue_names names_;
    queue_order order_;
    std::error_code over_;

    bool looking_ = false;       // a listing is under way, or a pause before the next
    back_off before_looking_;
    std::string following_;  // the name of the node that the head waits for
    std::uint64_t following_round_ = 0;
    std::shared_ptr<pending_watched_data> following_request_;
    std::optional<watch> following_watch_;
    back_off before_following_;

    std::size_t entering_ = 0;
    std::set<std::string> arriving_;  // the names, without numbers, of nodes that are being joined to an owner's, or looked for
    // Of those who wait: there may be very many, and most of what happens concerns none of them.
    std::map<queue_key, contender_ptr> impatient_, observed_;
    bool making_parent_ = false;
    std::vector<contender_ptr> orphans_;  // wait for the directory
    bool searching_ = false;
    std::vector<lost_create> lost_;       // the answers to their creates: wait for the next search
    std::vector<contender_ptr> refused_;  // by a server that has too much to do: wait for a pause to end
    back_off before_creating_;
};

}  // namespace zkasio::lock_detail
