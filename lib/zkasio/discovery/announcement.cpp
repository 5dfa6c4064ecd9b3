#include <zkasio/discovery/announcement.hpp>

#include <zkasio/error.hpp>

#include <exception>
#include <utility>

namespace zkasio {
namespace {

asio::awaitable<void> refused_announcement(std::exception_ptr why) {
    std::rethrow_exception(why);
    co_return;
}
asio::awaitable<void> nothing_announced() { co_return; }
error no_announcement(const char* what) { return {errc::invalid_argument, what, {}, "nothing was announced"}; }

}  // namespace

announcement::announcement(persistent_node node, std::string path, service_instance announced)
    : node_(std::move(node)), path_(std::move(path)), announced_(std::move(announced)) {}

asio::awaitable<void> announcement::update(service_instance is) const {
    std::string data;
    try {
        if (!node_) throw no_announcement("update");
        if (is.name() != announced_->name() || is.id() != announced_->id() || is.type() != announced_->type())
            throw error(errc::invalid_argument, "update", path_, "this is another instance than the one announced");
        data = is.to_json();
    } catch (...) {
        return refused_announcement(std::current_exception());
    }
    return node_->set_data(std::move(data));
}

asio::awaitable<void> announcement::withdraw() const { return node_ ? node_->leave() : nothing_announced(); }

asio::awaitable<void> announcement::ended() const {
    if (node_) return node_->ended();
    return refused_announcement(std::make_exception_ptr(no_announcement("ended")));
}

}  // namespace zkasio
