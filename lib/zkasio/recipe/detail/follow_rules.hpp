#pragma once

#include <zkasio/recipe/node_follower.hpp>

#include <optional>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// What a node_follower does next. Pure: the caller sends the reads, and tells of the connection, the watches and the
/// answers in the order in which they come.
///
/// - F1: it reads only while somebody wants to know more than he does, and nothing stands for what was read last.
/// - F2: what was read is true until its watch fires, or the connection goes.
/// - F3: a change while a read is under way counts for the answer, too: that is told, and does not stand.
/// - F4: a missing node is read by exists(), which watches for its creation. If it exists by then, it is read again.
/// - F5: who knows the mark of an answer is not told of it.
/// - F6: after a failure the next read, which is the same, has to wait until resume().
class follow_rules {
public:
    /// @param what node_read::data or node_read::children.
    explicit follow_rules(node_read what) noexcept : what_(what) {}

    // ---------------------------------------------------------------------------------------------- what has happened
    void connected() noexcept { up_ = true; }
    void disconnected() noexcept;
    void changed(node_change what) noexcept;
    /// Whether that is what somebody wants to know; then nobody wants to any more.
    bool answered(node_read what, const node_mark& answer);
    /// @param known nothing: anything is news.
    void want(std::optional<node_mark> known) noexcept;
    /// Who wanted to know does not any more. A read that is under way is of no use then.
    void want_nothing() noexcept { wanted_ = false; }

    // ---------------------------------------------------------------------------------------------- what is to be done
    /// The next read. It counts as under way from now on.
    std::optional<node_read> next_read() noexcept;
    bool under_way() const noexcept { return reading_.has_value(); }
    bool put_off() const noexcept { return put_off_; }
    void resume() noexcept { put_off_ = false; }
    /// A watch for the creation of the node that has turned out to be of no use.
    bool take_left() noexcept { return std::exchange(left_, false); }

    /// @param what node_read::children, or anything else for the watch of the data.
    bool watches(node_read what) const noexcept;

private:
    bool is_news(const node_mark& answer) noexcept;

    node_read what_;
    bool up_ = false, wanted_ = false, put_off_ = false, left_ = false;
    std::optional<node_mark> known_;    // to who wants to know more
    std::optional<node_mark> stands_;   // F2
    std::optional<node_read> reading_;  // under way
    bool changed_meanwhile_ = false;    // F3
    bool missing_ = false;              // F4
    bool watches_data_ = false, watches_children_ = false;
};

/// The mark of an answer to a read of that kind.
node_mark mark_of(node_read what, std::error_code code, const node_stat& stat) noexcept;

}  // namespace zkasio::detail
