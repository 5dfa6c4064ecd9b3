#include <zkasio/pending.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/replies.hpp>
#include <zkasio/detail/throw_error.hpp>

namespace zkasio {

using namespace detail;

pending::pending(core_ptr core, std::shared_ptr<detail::ticket> ticket, std::string operation, std::string path)
    : core_(std::move(core)), ticket_(std::move(ticket)), operation_(std::move(operation)), path_(std::move(path)) {}

asio::awaitable<void> pending::answered() const {
    const wait_end failed = co_await wait_for(core_, ticket_->answered);
    if (failed.code) throw error(failed.code, operation_, path_, {}, true);
}

void pending::then(std::function<void()> f) const {
    if (ticket_->answered->done) return f();  // refused at once
    ticket_->answered->then = std::move(f);
}

asio::awaitable<created> pending_create::result() const {
    co_await answered();
    co_return get();
}

created pending_create::get() const {
    throw_if_failed(ticket_->reply, operation_, path_);
    return take_created(reply(ticket_->reply));
}

asio::awaitable<node_children> pending_children::result() const {
    co_await answered();
    co_return get();
}

node_children pending_children::get() const {
    throw_if_failed(ticket_->reply, operation_, path_);
    return take_children(std::move(ticket_->reply));
}

asio::awaitable<node_data> pending_data::result() const {
    co_await answered();
    co_return get();
}

node_data pending_data::get() const {
    throw_if_failed(ticket_->reply, operation_, path_);
    return take_data(std::move(ticket_->reply));
}

pending_watched_data::pending_watched_data(core_ptr core, std::shared_ptr<detail::ticket> ticket,
                                           std::shared_ptr<watch_state> watch, std::string path)
    : pending(std::move(core), std::move(ticket), "get", std::move(path)), watch_(std::move(watch)) {}

pending_watched_data::~pending_watched_data() {
    if (!watch_) return;
    on_strand(core_, [core = core_, ticket = ticket_, watch = std::move(watch_)] {
        if (ticket->answered->done)
            core->leave_watch(watch);
        else
            ticket->answered->then = [core, watch] { core->leave_watch(watch); };
    });
}

watched<node_data> pending_watched_data::get() {
    throw_if_failed(ticket_->reply, operation_, path_);
    return watched<node_data>{take_data(std::move(ticket_->reply)), watch(core_, std::exchange(watch_, nullptr))};
}

asio::awaitable<void> pending_removal::result() const {
    co_await answered();
    get();
}

void pending_removal::get() const {
    const reply& r = ticket_->reply;
    throw_if_failed(r, operation_, r.path.empty() ? path_ : r.path);
}

}  // namespace zkasio
