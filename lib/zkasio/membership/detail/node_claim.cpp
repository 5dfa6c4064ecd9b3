#include <zkasio/membership/detail/node_claim.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

namespace zkasio::membership_detail {

asio::awaitable<std::shared_ptr<node_claim>> node_claim::get(session on, std::shared_ptr<node_board> wanted_by) {
    const auto make = []() -> std::shared_ptr<session_local> { return std::make_shared<node_claim>(); };
    const auto claim =
        std::static_pointer_cast<node_claim>(toolbox(on).local("persistent_node " + wanted_by->path(), make));
    for (;;) {
        const std::shared_ptr<node_board> holder = claim->holder_.lock();
        if (!holder || holder == wanted_by) break;
        const one_shot_event wish = wanted_by->next_wish();
        if (wanted_by->leaving()) co_return nullptr;
        if (!holder->leaving())
            throw error(errc::invalid_argument, "persistent_node", wanted_by->path(),
                        "another persistent_node, or membership of a group, of this client keeps this node");
        if (!claim->released_) claim->released_.emplace(toolbox(on).make_one_shot_event());
        const one_shot_event released = *claim->released_;
        auto release = [&] { return released.wait(); };
        co_await wish.run_until(release);
    }
    claim->holder_ = wanted_by;
    co_return claim;
}

void node_claim::release(const node_board& by) noexcept {
    if (holder_.lock().get() != &by) return;
    holder_.reset();
    if (released_) released_->fire();
    released_.reset();
}

}  // namespace zkasio::membership_detail
