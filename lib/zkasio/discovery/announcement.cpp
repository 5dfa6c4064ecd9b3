#include <zkasio/discovery/announcement.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/rethrow_to_caller.hpp>

#include <exception>
#include <utility>

namespace zkasio {
namespace {

asio::awaitable<void> refused_announcement(std::exception_ptr why) {
    std::rethrow_exception(why);
    co_return;
}
asio::awaitable<void> nothing_announced() { co_return; }
error no_announcement(const char* what) {
    return {errc::invalid_argument, what, {}, "nothing was announced by this object, or it was moved from"};
}

}  // namespace

struct announcement::parts {
    persistent_node node;
    service_instance announced;
};

announcement::announcement(persistent_node node, std::string path, service_instance announced)
    : is_(std::make_shared<const parts>(parts{std::move(node), std::move(announced)})), path_(std::move(path)) {}

asio::awaitable<void> announcement::update(service_instance is) const {
    std::string data;
    try {
        if (!is_) throw no_announcement("update");
        const service_instance& first = is_->announced;
        if (is.name() != first.name() || is.id() != first.id() || is.type() != first.type())
            throw error(errc::invalid_argument, "update", path_, "this is another instance than the one announced");
        data = is.to_json();
    } catch (...) {
        return refused_announcement(std::current_exception());
    }
    return requests_as("update", path_, is_->node.set_data(std::move(data)));
}

asio::awaitable<void> announcement::withdraw() const { return is_ ? is_->node.leave() : nothing_announced(); }

asio::awaitable<void> announcement::ended() const {
    if (is_) return is_->node.ended();
    return refused_announcement(std::make_exception_ptr(no_announcement("ended")));
}

persistent_node_state announcement::state() const noexcept {
    return is_ ? is_->node.state() : persistent_node_state::ended;
}

}  // namespace zkasio
