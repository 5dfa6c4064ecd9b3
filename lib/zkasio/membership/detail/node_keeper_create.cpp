// The part of node_keeper that creates the node, and finds out what has become of a create.

#include <zkasio/membership/detail/node_keeper.hpp>

#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace zkasio::membership_detail {

create_options node_keeper::how_to_create() const {
    create_options how;
    how.mode(options_.mode()).ttl(options_.ttl()).acl(options_.acl()).parents(options_.parents());
    if (has_no_name()) return how;
    switch (options_.mode()) {  // created again under the name that it has got
        case create_mode::ephemeral_sequential: return how.mode(create_mode::ephemeral);
        case create_mode::persistent_sequential: return how.mode(create_mode::persistent);
        case create_mode::persistent_sequential_ttl: return how.mode(create_mode::persistent_ttl);
        default: return how;
    }
}

// A node without a name gets a protected one, by which it can be found if the answer is lost, also in the next session.
std::string node_keeper::path_to_create() {
    if (!has_no_name()) return node_path_;
    const std::string& path = board_->path();
    lost_id_ = new_protection_id();
    return join_path(std::string(parent_path(path)), protection_prefix(lost_id_) + std::string(node_name(path)));
}

void node_keeper::create_failed(const error& e, bool was_unknown) noexcept {
    if (e.outcome_unknown()) return;
    outcome_unknown_ = was_unknown;
    lost_id_.clear();
}

asio::awaitable<void> node_keeper::create(std::shared_ptr<node_keeper> self, session on, one_shot_event wish) {
    if (!self->lost_id_.empty()) {
        const bool found = co_await find_lost(self, on);
        if (found) co_return;
    }
    node_board::wished_data data = self->board_->data();
    const bool was_unknown = self->outcome_unknown_;
    self->outcome_unknown_ = was_unknown || !self->has_no_name();
    const std::string path = self->path_to_create();
    const create_options how = self->how_to_create();
    bool parent_is_gone = false;
    std::exception_ptr no_room;
    std::optional<error> hung_up;
    const auto asked_at = boot_clock::now();
    try {
        const created made = co_await on.create(path, data.data, how);
        self->node_path_ = made.path;
        self->written_at_ = asked_at;
        self->stands(made.stat, std::move(data));
        co_return;
    } catch (const error& e) {
        self->create_failed(e, was_unknown);
        if (e.code() == errc::too_large && self->refuses_data(e, data)) co_return;
        parent_is_gone = e.code() == zk_errc::no_node && self->options_.parents() != missing_parents::fail;
        if (self->room_.is_waited_for(e) || (e.code() == errc::too_many_ephemerals && !self->has_no_name()))
            no_room = std::current_exception();
        if (e.hung_up()) hung_up.emplace(e);
        if (e.code() != zk_errc::node_exists && !parent_is_gone && !no_room && !hung_up) throw;
    }
    if (hung_up) {
        co_await hung_up_at_create(self, on, *hung_up, data);
        co_return;
    }
    // This server may not have heard yet of the node that is in the way.
    co_await on.sync(path);
    if (no_room) {  // and none is needed for a node of the process that had the session before
        bool exists = false;
        try {
            const std::optional<node_stat> there = co_await on.exists(path);
            exists = there.has_value();
        } catch (const error& e) {
            if (e.code() != zk_errc::no_auth) throw;
        }
        if (!exists && !self->room_.has_stood()) std::rethrow_exception(no_room);
        const auto pause = [&] { return self->room_.pauses(on).pause(); };
        if (!exists) co_await wish.run_until(pause);
    }
    if (parent_is_gone) co_await wait_for_parent(self, on, wish);
}

// Servers hang up at the create. If there is no node, whoever waits for it is told, and the keeper tries again after a
// pause, with the data of before if set_data() has asked for these.
asio::awaitable<void> node_keeper::hung_up_at_create(std::shared_ptr<node_keeper> self, session on, error lost,
                                                     node_board::wished_data data) {
    bool exists = false;
    if (self->has_no_name()) {
        exists = co_await find_lost(self, on);
    } else {
        co_await on.sync(self->node_path_);
        const std::optional<node_stat> there = co_await on.exists(self->node_path_);
        exists = there.has_value();
    }
    if (exists) co_return;  // and is looked at next
    self->outcome_unknown_ = false;
    const std::string& path = self->has_no_name() ? self->board_->path() : self->node_path_;
    const bool is_parent = lost.operation() != "create";
    const error why = (is_parent ? lost : lost.renamed("persistent_node", path)).not_applied();
    if (self->refuses_data(why, data)) co_return;
    self->board_->cannot_create(std::make_exception_ptr(why));
    throw error(why);
}

// Finds the node of a create whose answer was lost. The node may have other data than the newest.
asio::awaitable<bool> node_keeper::find_lost(std::shared_ptr<node_keeper> self, session on) {
    const std::optional<created> found =
        co_await toolbox(on).find_protected(std::string(parent_path(self->board_->path())), self->lost_id_);
    self->lost_id_.clear();
    if (!found) co_return false;
    self->node_path_ = found->path;
    self->outcome_unknown_ = true;
    co_return true;
}

// A create with its missing parents has found no parent: another client may have removed one in between. If the chroot
// itself is missing, no later attempt succeeds: then exists("/") fails, and its error ends the node.
asio::awaitable<void> node_keeper::wait_for_parent(std::shared_ptr<node_keeper> self, session on,
                                                   one_shot_event wish) {
    const pending_data root = toolbox(on.unrooted()).start_exists("/");  // a view's root is a parent like others
    try {
        co_await root.result();
    } catch (const error& e) {
        if (e.code() != zk_errc::no_auth) throw;  // servers from 3.8.4 on: the root exists, and may not be read
    }
    co_await pause_unless(self, wish);
}

}  // namespace zkasio::membership_detail
