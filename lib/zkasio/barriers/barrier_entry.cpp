#include <zkasio/barriers/barrier_entry.hpp>

#include <zkasio/barriers/detail/barrier_member.hpp>

#include <utility>

namespace zkasio {

using barrier_detail::barrier_member;

namespace {

using member_ptr = std::shared_ptr<barrier_member>;

asio::awaitable<loss_reason> until_outside(member_ptr member) {
    if (!member) co_return loss_reason::released;
    co_return co_await member->hold().lost();
}

asio::awaitable<void> until_all_left(member_ptr member, [[maybe_unused]] std::shared_ptr<const void> open) {
    if (!member) co_return;
    co_await barrier_member::until_left(member);
}

}  // namespace

barrier_entry::barrier_entry(std::shared_ptr<barrier_member> member, std::shared_ptr<const void> open) noexcept
    : open_(std::move(open)), member_(std::move(member)) {}

barrier_entry& barrier_entry::operator=(barrier_entry&& other) noexcept {
    if (this != &other) {
        begin_to_leave();
        member_ = std::move(other.member_);
        open_ = std::move(other.open_);
    }
    return *this;
}

void barrier_entry::begin_to_leave() noexcept {
    if (member_) barrier_member::begin_to_leave(member_);
}

bool barrier_entry::held() const noexcept { return member_ && member_->hold().held(); }
loss_reason barrier_entry::reason() const noexcept {
    return member_ ? member_->hold().reason() : loss_reason::released;
}
asio::awaitable<loss_reason> barrier_entry::lost() const { return until_outside(member_); }

asio::awaitable<void> barrier_entry::leave() {
    begin_to_leave();
    return until_all_left(member_, std::move(open_));
}

const std::string& barrier_entry::path() const noexcept {
    static const std::string none;
    return member_ ? member_->path() : none;
}

}  // namespace zkasio
