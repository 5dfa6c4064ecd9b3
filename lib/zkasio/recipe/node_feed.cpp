#include <zkasio/recipe/node_feed.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/requests/node_feeds.hpp>

#include <utility>

namespace zkasio {

using namespace detail;

node_feed::node_feed(core_ptr core, std::shared_ptr<feed_state> state, view_root root,
                     std::shared_ptr<node_feed_listener> of_view)
    : core_(std::move(core)), state_(std::move(state)), root_(root), of_view_(std::move(of_view)) {}

node_feed& node_feed::operator=(node_feed&& other) noexcept {
    node_feed gone = std::move(*this);
    core_ = std::move(other.core_);
    state_ = std::move(other.state_);
    root_ = other.root_;
    of_view_ = std::move(other.of_view_);
    return *this;
}

node_feed::~node_feed() {
    if (state_) on_strand(core_, [core = core_, state = state_] { core->requests().remove_feed(*state); });
}

void node_feed::read(node_read what, std::string path) const {
    there(core_, "read", path)->requests().read_for(state_, what, whole_path(root_, std::move(path)));
}

bool node_feed::waits() const { return core_ && core_->requests().waits_for_one_watch(*state_); }

void node_feed::leave(node_read what, const std::string& path) const {
    request_table& requests = there(core_, "leave", path)->requests();
    if (!root_) return requests.leave_feed_watch(what, path);
    requests.leave_feed_watch(what, whole_path(root_, path));
}

}  // namespace zkasio
