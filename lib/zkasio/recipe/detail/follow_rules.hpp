#pragma once

#include <zkasio/recipe/node_follower.hpp>

#include <optional>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// Decides what a node_follower does next. Pure: the caller sends the reads, and reports the connection, the watches
/// and the answers in the order in which they come.
///
/// - F1: the node is read only while a tell_next() is pending and the last answer is not current (F2).
/// - F2: an answer is current until its watch fires, or the connection goes.
/// - F3: if the node changes while a read is under way, the answer may be older than the change.
///   The answer is delivered, but not taken as current (F2): the next tell_next() reads again.
/// - F4: a missing node is read by exists(), which watches for its creation. If exists() finds it, it is read again.
/// - F5: an answer whose mark is known to the caller is not delivered.
/// - F6: after a failure the next read, which is the same, has to wait until resume(). A refusal is such a failure,
///   too: no watch tells of a change of the ACL.
class follow_rules {
public:
    /// @param what node_read::data or node_read::children.
    explicit follow_rules(node_read what) noexcept : what_(what) {}

    // ---------------------------------------------------------------------------------------------- what has happened
    void connected() noexcept { up_ = true; }
    void disconnected() noexcept;
    void changed(node_change what) noexcept;
    /// Takes a server's answer. True: the answer completes the pending tell_next().
    bool answered(node_read what, const node_mark& answer);
    /// @param known nothing: every answer is news.
    void want(std::optional<node_mark> known) noexcept;
    /// Cancels the pending tell_next(). The answer to a read under way is not delivered for it.
    void want_nothing() noexcept { wanted_ = false; }

    // ---------------------------------------------------------------------------------------------- what is to be done
    /// The next read, which is under way from now on.
    std::optional<node_read> next_read() noexcept;
    bool under_way() const noexcept { return reading_.has_value(); }
    bool put_off() const noexcept { return put_off_; }
    void resume() noexcept { put_off_ = false; }
    /// Whether a watch for the creation of the node is to be removed, because another watch does its work.
    bool take_left() noexcept { return std::exchange(left_, false); }

    /// @param what node_read::children, or anything else for the watch of the data.
    bool watches(node_read what) const noexcept;

private:
    bool is_news(const node_mark& answer) noexcept;

    node_read what_;
    bool up_ = false, wanted_ = false, put_off_ = false, left_ = false;
    std::optional<node_mark> known_;    // the mark that the caller of the pending tell_next() knows
    std::optional<node_mark> stands_;   // F2: the current answer
    std::optional<node_read> reading_;  // the read that is under way
    bool changed_meanwhile_ = false;    // F3: the node has changed since the read was sent
    bool missing_ = false;              // F4: the last answer was zk_errc::no_node
    bool watches_data_ = false, watches_children_ = false;
};

/// The mark of an answer to a read of that kind.
node_mark mark_of(node_read what, std::error_code code, const node_answer& answer) noexcept;

}  // namespace zkasio::detail
