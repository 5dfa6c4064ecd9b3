#include <zkasio/recipe/detail/follow_rules.hpp>

#include <zkasio/error.hpp>

#include <cassert>
#include <functional>
#include <string>

namespace zkasio::detail {

// Servers list the names in any order: hence a sum.
node_mark mark_of(node_read what, std::error_code code, const node_answer& answer) noexcept {
    node_mark mark;
    mark.code = code;
    if (code) return mark;
    mark.czxid = answer.stat.czxid;
    mark.zxid = what == node_read::children ? answer.stat.pzxid : answer.stat.mzxid;
    for (const std::string& name : answer.children) mark.names += std::hash<std::string>()(name);
    return mark;
}

void follow_rules::disconnected() noexcept {
    const follow_rules before = std::exchange(*this, follow_rules(what_));
    wanted_ = before.wanted_;
    known_ = before.known_;
}

void follow_rules::changed(node_change what) noexcept {
    const bool children = what == node_change::children_changed, data = !children;
    if (data) watches_data_ = false;
    if (children || what == node_change::removed) watches_children_ = false;
    const bool other_half = what_ == node_read::children ? what == node_change::data_changed : children;
    if (other_half) return;
    stands_.reset();
    changed_meanwhile_ = reading_.has_value();
}

bool follow_rules::answered(node_read what, const node_mark& answer) {
    assert(reading_ == what && "an answer belongs to the read under way");
    reading_.reset();
    const bool stands = !std::exchange(changed_meanwhile_, false);
    if (answer.code == condition::retryable) {
        put_off_ = true;
        return false;
    }
    const bool was_missing = std::exchange(missing_, false);
    if (answer.code == zk_errc::no_node && !was_missing) {
        missing_ = true;
        return false;
    }
    if (!answer.code || was_missing) {
        const bool left_a_watch = !answer.code || answer.code == zk_errc::no_node;
        bool& watch = what == node_read::children ? watches_children_ : watches_data_;
        watch = watch || left_a_watch;
    }
    if (!answer.code && was_missing) {
        // F4. Another watch will report changes of the children.
        if (what_ == node_read::children) left_ = std::exchange(watches_data_, false);
        return false;
    }
    if (answer.code && answer.code != zk_errc::no_node)
        put_off_ = true;
    else if (stands)
        stands_ = answer;
    return is_news(answer);
}

bool follow_rules::is_news(const node_mark& answer) noexcept {
    if (!wanted_ || (known_ && *known_ == answer)) return false;
    wanted_ = false;
    return true;
}

void follow_rules::want(std::optional<node_mark> known) noexcept {
    wanted_ = true;
    known_ = std::move(known);
    // The answer is current, but not known to the caller: its data are not kept here, so the node is read again.
    if (stands_ && stands_ != known_) stands_.reset();
}

std::optional<node_read> follow_rules::next_read() noexcept {
    if (!up_ || !wanted_ || put_off_ || stands_ || reading_) return std::nullopt;
    reading_ = missing_ ? node_read::stat : what_;
    return reading_;
}

bool follow_rules::watches(node_read what) const noexcept {
    const bool children = what == node_read::children;
    const bool reading = reading_ && (*reading_ == node_read::children) == children;
    return reading || (children ? watches_children_ : watches_data_);
}

}  // namespace zkasio::detail
