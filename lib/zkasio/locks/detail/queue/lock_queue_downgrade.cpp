// The part of lock_queue in which a writer becomes a reader.

#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {

// Curator's downgrade takes two steps, and holds both locks in between; this one takes one step.
void lock_queue::downgrade(const contender_ptr& from, const contender_ptr& to) {
    if (over_) return fail(to, ended_while_held("downgrade", from->path));
    if (from->now() != stage::owner) {  // G40: given back after another thread has seen the lock held
        const loss_reason why = from->node_deleted ? loss_reason::node_deleted : from->hold.reason();
        return fail(to, std::make_exception_ptr(error(errc::lock_lost, "downgrade", from->path, to_string(why))));
    }
    go_to(to, stage::replacing_writer);
    go_to(from, stage::downgrading);
    tools_.run_in_background(replace_writer(shared_from_this(), from, to));
}

asio::awaitable<void> lock_queue::replace_writer(std::shared_ptr<lock_queue> self, contender_ptr from,
                                                 contender_ptr to) {
    std::exception_ptr failed;
    std::optional<created> node;
    try {
        node = co_await self->create_node_instead_of(from, to);
        if (!node) {  // G35: the writer's node was gone
            self->lose_node(from);
            const auto why = to_string(loss_reason::node_deleted);
            failed = std::make_exception_ptr(error(errc::lock_lost, "downgrade", from->path, why));
        }
    } catch (...) {
        failed = std::current_exception();
    }
    if (self->over_) failed = self->ended_while_held("downgrade", from->path);
    if (failed)
        self->not_replaced(from, to, failed);
    else
        self->writer_replaced(from, to, std::move(*node));
}

void lock_queue::not_replaced(const contender_ptr& from, const contender_ptr& to, const std::exception_ptr& failed) {
    fail(to, failed);
    const bool given_up = from->now() == stage::downgrading_abandoned;
    if (from->now() != stage::left) go_to(from, stage::owner);
    if (given_up) return leave(from);  // G34: gave up during the downgrade
    give_back_soon(from);              // only if the lock was lost during the downgrade
}

void lock_queue::writer_replaced(const contender_ptr& from, const contender_ptr& to, created node) {
    to->path = node.path;
    go_to(from, stage::left);
    from->hold.end(true);
    from->tell_gone();
    to->at = order_.downgrade(from->at, node_name(to->path), to);
    order_.discard_listings();  // G33: only a listing tells whether the readers behind it still have their nodes
    // The same place, the same token: a new token would be larger than those of the writers that wait behind the
    // reader.
    to->czxid = from->czxid;
    if (has_given_up(to->now())) {  // G37: no longer wanted
        go_to(to, stage::left);
        order_.leave(to->at);
        remove(to);
    } else {
        become_owner(to);
    }
    reconsider();
}

// Replaces the writer's node by one of the reader, with the same number. Nothing: the writer's node is gone, or the new
// node already.
asio::awaitable<std::optional<created>> lock_queue::create_node_instead_of(contender_ptr from, contender_ptr to) {
    const std::string prefix = names().prefix(names().new_id(), lock_kind::shared);
    const std::string path = join_path(directory(), prefix + std::string(names().digits(node_name(from->path))));
    expect_node(prefix);  // G17: no contender of this session follows the new node
    std::optional<created> node;
    std::exception_ptr failed;
    try {
        node = co_await replace_by_reader_node(on_, to->asked.spec, path, from->path);
    } catch (...) {
        failed = std::current_exception();
    }
    stop_expecting_node(prefix);
    if (!node) reconsider();  // G17: a contender that has seen the node in a listing, and not followed it, looks again
    if (failed) std::rethrow_exception(failed);
    co_return node;
}

// The error of an owner's operation whose session is over: the lock is lost with the session.
std::exception_ptr lock_queue::ended_while_held(std::string_view operation, const std::string& path) const {
    if (over_ == errc::client_closed) return ended(operation, path);
    return std::make_exception_ptr(error(errc::lock_lost, operation, path, to_string(loss_reason::session_expired)));
}

}  // namespace zkasio::lock_detail
