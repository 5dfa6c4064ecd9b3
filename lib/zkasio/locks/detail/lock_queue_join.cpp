// The part of lock_queue that takes places beside an owner, in one transaction: readers who join others, and downgrades.

#include <zkasio/locks/detail/lock_queue.hpp>

#include <zkasio/path.hpp>

namespace zkasio::lock_detail {

// A reader that does not care for writers who only wait takes a place beside a reader who holds, which the writers behind
// that one see like any other. That the holder is still there is checked in the same transaction.
asio::awaitable<void> lock_queue::join_readers(std::shared_ptr<lock_queue> self, contender_ptr c) {
    std::exception_ptr failed;
    bool joined = false;
    try {
        joined = co_await self->try_to_join(c);
    } catch (...) {
        failed = std::current_exception();
    }
    if (self->over_) failed = self->ended("acquire", self->directory_);
    if (joined) co_return;
    self->create_unless(c, std::move(failed));
}

asio::awaitable<bool> lock_queue::try_to_join(contender_ptr c) {
    while (!has_given_up(c->now())) {
        node_children found;
        bool no_directory = false;
        try {
            found = co_await on_.children(directory_);
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
            no_directory = true;
        }
        if (no_directory) co_return false;
        const auto ordered = names_.in_order(std::move(found.names));
        if (ordered.empty() || ordered.front().kind == lock_kind::exclusive) co_return false;

        const std::string& holder = ordered.front().name;
        const auto node = co_await create_joined(c, holder, false);
        if (!node) continue;
        c->path = node->path;
        c->at = order_.enter(node_name(c->path), c);
        order_.grant(c->at);
        entered_as_owner(c, *node);
        co_return true;
    }
    co_return false;
}

// Curator's downgrade takes two steps, and holds both locks in between; this is one.
void lock_queue::downgrade(const contender_ptr& from, const contender_ptr& to) {
    if (over_) return fail(to, ended_while_held("downgrade", from->path));
    go_to(to, stage::replacing_writer);
    go_to(from, stage::downgrading);
    on_.run_in_background(go_on_as(shared_from_this(), from, to));
}

asio::awaitable<void> lock_queue::go_on_as(std::shared_ptr<lock_queue> self, contender_ptr from, contender_ptr to) {
    std::exception_ptr failed;
    std::optional<created> node;
    try {
        node = co_await self->create_joined(to, std::string(node_name(from->path)), true);
        if (!node) {
            self->lose_node(from);
            failed = std::make_exception_ptr(error(errc::lock_lost, "downgrade", from->path, to_string(loss_reason::node_deleted)));
        }
    } catch (...) {
        failed = std::current_exception();
    }
    if (self->over_) failed = self->ended_while_held("downgrade", from->path);
    if (!node || self->over_) {
        self->fail(to, failed);
        const bool given_up = from->now() == stage::downgrading_abandoned;
        if (from->now() != stage::left) self->go_to(from, stage::owner);
        if (given_up) self->leave(from);
        co_return;
    }
    to->path = node->path;
    self->go_to(from, stage::left);
    if (from->hold) from->hold->end(true);
    from->tell_gone();
    to->at = self->order_.downgrade(from->at, node_name(to->path), to);
    self->order_.forget();  // whether the readers behind it still have their nodes, only a listing tells
    // The same place, the same token: a new one would be larger than those of the writers who wait behind.
    node->stat.czxid = from->czxid;
    self->entered_as_owner(to, *node);
}

// Creates a reader's node with the number of `reader` if that exists, and, if wanted, removes it. Nothing: the reader is gone, or the
// node already.
asio::awaitable<std::optional<created>> lock_queue::create_joined(contender_ptr c, std::string reader, bool replace) {
    const std::string prefix = names_.prefix(names_.new_id(), lock_kind::shared);
    const std::string path = join_path(directory_, prefix + std::string(names_.digits(reader)));
    arriving_.insert(prefix);
    std::optional<created> node;
    std::exception_ptr failed;
    try {
        node = co_await create_joined_at(path, c->asked.spec, join_path(directory_, reader), replace);
    } catch (...) {
        failed = std::current_exception();
    }
    arriving_.erase(prefix);
    if (!node) reconsider();  // whoever has seen it, and left it alone, looks again
    if (failed) std::rethrow_exception(failed);
    co_return node;
}

asio::awaitable<std::optional<created>> lock_queue::create_joined_at(std::string path, lock_spec_ptr as, std::string reader, bool replace) {
    create_options options;
    options.mode(create_mode::ephemeral).acl(as->acl);
    transaction steps;
    steps.check(reader);
    steps.create(path, bytes(as->data), options);
    if (replace) steps.remove(reader);
    back_off pauses = on_.make_back_off();
    for (;;) {
        std::error_code failed;
        try {
            co_await on_.multi(steps);
        } catch (const error& e) {
            if (e.code() == zk_errc::no_node) co_return std::nullopt;
            if (e.code() != zk_errc::node_exists && e.code() != condition::retryable) throw;
            failed = e.code();
        }
        // Was it done? A server that lags behind does not show it yet, so sync first.
        std::optional<node_stat> there;
        for (bool known = false; !known;) {
            try {
                if (failed) co_await on_.sync(directory_);
                there = co_await on_.exists(path);
                known = true;
            } catch (const error& e) {
                if (e.code() != condition::retryable) throw;
            }
            if (!known) co_await pauses.pause();
        }
        if (there) {
            std::optional<created> node(std::in_place);
            node->path = path;
            node->stat = *there;
            co_return node;
        }
        if (!failed) co_return std::nullopt;
        co_await pauses.pause();
    }
}

void lock_queue::entered_as_owner(const contender_ptr& c, const created& node) {
    c->czxid = node.stat.czxid;
    if (has_given_up(c->now())) {
        go_to(c, stage::left);
        order_.leave(c->at);
        remove(c, {});
    } else {
        become_owner(c);
    }
    reconsider();
}

}  // namespace zkasio::lock_detail
