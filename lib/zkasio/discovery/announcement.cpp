#include <zkasio/discovery/announcement.hpp>

#include <zkasio/error.hpp>

#include <exception>
#include <utility>

namespace zkasio {
namespace {

asio::awaitable<void> refused_update(std::exception_ptr why) {
    std::rethrow_exception(why);
    co_return;
}

}  // namespace

announcement::announcement(persistent_node node, std::string path, service_instance announced)
    : node_(std::move(node)), path_(std::move(path)), announced_(std::move(announced)) {}

asio::awaitable<void> announcement::update(service_instance is) const {
    std::string data;
    try {
        if (is.name() != announced_.name() || is.id() != announced_.id() || is.type() != announced_.type())
            throw error(errc::invalid_argument, "update", path_, "this is another instance than the one announced");
        data = is.to_json();
    } catch (...) {
        return refused_update(std::current_exception());
    }
    return node_.set_data(std::move(data));
}

asio::awaitable<void> announcement::withdraw() const { return node_.leave(); }
asio::awaitable<void> announcement::ended() const { return node_.ended(); }

}  // namespace zkasio
