#include <zkasio/pending.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/throw_error.hpp>

namespace zkasio {

pending::pending(std::shared_ptr<detail::core> core, std::shared_ptr<detail::ticket> ticket, std::string operation,
                 std::string path)
    : core_(std::move(core)), ticket_(std::move(ticket)), operation_(std::move(operation)), path_(std::move(path)) {}

asio::awaitable<void> pending::answered() const {
    const detail::reply waited = co_await detail::wait_for(core_, ticket_->answered);
    if (waited.code) throw error(waited.code, operation_, path_, {}, true);
}

asio::awaitable<created> pending_create::result() const {
    co_await answered();
    detail::throw_if_failed(ticket_->reply, operation_, path_);
    created c;
    c.path = ticket_->reply.path;
    c.stat = ticket_->reply.stat;
    co_return c;
}

asio::awaitable<node_children> pending_children::result() const {
    co_await answered();
    detail::throw_if_failed(ticket_->reply, operation_, path_);
    node_children c;
    c.names = std::move(ticket_->reply.children);
    c.stat = ticket_->reply.stat;
    co_return c;
}

asio::awaitable<void> pending_removal::result() const {
    co_await answered();
    detail::throw_if_failed(ticket_->reply, operation_, path_);
}

}  // namespace zkasio
