#include <zkasio/membership/detail/node_keeper.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <cassert>
#include <exception>
#include <optional>
#include <utility>

namespace zkasio::membership_detail {

bool is_ours(const node_stat& seen, const node_facts& facts) noexcept {
    if (is_ephemeral(facts.mode)) return seen.ephemeral_owner == facts.session_id;
    return !seen.is_ephemeral() && (facts.outcome_unknown || seen.czxid == facts.created_by);
}

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts) {
    if (!seen) return node_step::create;
    const auto& former = facts.former_sessions;
    if (seen->is_ephemeral() && std::find(former.begin(), former.end(), seen->ephemeral_owner) != former.end())
        return node_step::remove;
    const bool can_be_taken_over = !is_ephemeral(facts.mode) && !is_sequential(facts.mode);
    if (!is_ours(*seen, facts) && (!can_be_taken_over || seen->is_ephemeral()))
        return is_sequential(facts.mode) ? node_step::new_name : node_step::wait_until_gone;
    return seen->czxid != facts.created_by || facts.has_new_data ? node_step::write_data : node_step::stay;
}

asio::awaitable<std::shared_ptr<node_claim>> node_claim::get(session on, std::shared_ptr<node_board> wanted_by) {
    const auto make = []() -> std::shared_ptr<session_local> { return std::make_shared<node_claim>(); };
    const std::string key = "persistent_node " + toolbox(on).whole_path(wanted_by->path());
    const auto claim = std::static_pointer_cast<node_claim>(toolbox(on.unrooted()).local(key, make));
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

node_keeper::node_keeper(std::shared_ptr<node_board> board, persistent_node_options options)
    : board_(std::move(board)), options_(std::move(options)), room_("persistent_node", board_->path()) {
    if (!is_sequential(options_.mode())) node_path_ = board_->path();
}

void node_keeper::forget_node() noexcept {
    created_by_ = 0;
    outcome_unknown_ = false;
    lost_id_.clear();
}

void node_keeper::begin(const session& on) {
    assert(!running_ && "a loop runs one body at a time");
    running_ = true;
    if (on.id() == last_.id()) return;
    claim_.reset();
    pauses_.emplace(toolbox(on).make_back_off());
    // A session's nodes go with it, if not at once: a session given up with no server in reach may live on.
    if (is_ephemeral(options_.mode())) {
        constexpr std::size_t most = 16;
        if (last_.id() != 0) former_sessions_.push_back(last_.id());
        if (former_sessions_.size() > most) former_sessions_.erase(former_sessions_.begin());
        forget_node();
    }
    last_ = on;
}

node_facts node_keeper::facts(const session& on) const {
    node_facts known;
    known.mode = options_.mode();
    known.session_id = on.id();
    known.created_by = created_by_;
    known.outcome_unknown = outcome_unknown_;
    known.former_sessions = former_sessions_;
    known.has_new_data = board_->has_new_data();
    return known;
}

void node_keeper::stands(const node_stat& node, node_board::wished_data data) {
    if (created_by_ != node.czxid) may_write_ = true;
    created_by_ = node.czxid;
    outcome_unknown_ = false;
    room_.stands();
    lost_id_.clear();
    pauses_->reset();
    board_->wrote(std::move(data));
    board_->tell(persistent_node_state::standing, node_path_);
}

namespace {

// The hint of an error about the node at `path`: what `e` tells besides its code, and besides its path if that is
// `path`.
std::string hint_of(const error& e, std::string_view path) {
    if (e.outcome_unknown()) return e.what();
    std::string text = e.operation();
    if (e.path() != path) text.append(" ").append(e.path());
    if (!e.hint().empty()) text.append(": ").append(e.hint());
    return text;
}

}  // namespace

// True: a server refuses the data of set_data(). The pending calls have failed, and the keeper goes on.
bool node_keeper::refuses_data(const error& why, const node_board::wished_data& data) const {
    const bool for_good = why.hung_up() ||
                          (why.code() != condition::retryable && why.code() != condition::session_ended &&
                           why.code() != condition::cancelled);
    if (!for_good || data.number == 0) return false;
    const std::string& path = has_no_name() ? board_->path() : node_path_;
    board_->refused(data, std::make_exception_ptr(error(why.code(), "set_data", path, hint_of(why, path))));
    return true;
}

// Pauses before the next attempt; a new wish ends the pause.
asio::awaitable<void> node_keeper::pause_unless(std::shared_ptr<node_keeper> self, one_shot_event wish) {
    auto pause = [&] { return self->pauses_->pause(); };
    co_await wish.run_until(pause);
}

// Writes only into the node that was seen: if another client has replaced that node, the new one is to be looked at
// first.
asio::awaitable<void> node_keeper::write(std::shared_ptr<node_keeper> self, session on, one_shot_event wish,
                                         node_stat seen) {
    node_board::wished_data data = self->board_->data();
    bool is_other = false;
    std::optional<error> hung_up;
    const auto asked_at = boot_clock::now();
    try {
        const node_stat now = co_await on.set(self->node_path_, data.data, seen.version);
        if (now.czxid != seen.czxid) co_return;
        self->written_at_ = asked_at;
        self->stands(now, std::move(data));
        co_return;
    } catch (const error& e) {
        is_other = e.code() == zk_errc::bad_version;
        if (e.hung_up()) hung_up.emplace(e);
        if (e.code() == zk_errc::no_node || (!is_other && !hung_up && self->refuses_data(e, data))) co_return;
        const bool may_not_write = e.code() == zk_errc::no_auth && seen.ephemeral_owner == on.id();
        if (!is_other && !may_not_write && !hung_up) throw;
    }
    if (hung_up) {
        co_await on.sync(self->node_path_);
        const std::optional<node_stat> there = co_await on.exists(self->node_path_);
        const bool written = !there || there->czxid != seen.czxid || there->version != seen.version;
        if (written || self->refuses_data(hung_up->not_applied(), data)) co_return;
        throw error(*hung_up);
    }
    if (is_other) {
        co_await pause_unless(self, wish);
    } else {
        // This session has created the node with its own data, and there are no other data that the node should have.
        self->stands(seen, std::move(data));
    }
}

// Looks at the node, acts, or waits until something changes. True: the node is to be created. If the outcome of a
// create is not known, a sync() has come before: if the node that is seen is not ours, no node of ours exists.
asio::awaitable<bool> node_keeper::look(std::shared_ptr<node_keeper> self, session on, one_shot_event wish) {
    const watched<std::optional<node_stat>> seen = co_await on.exists_and_watch(self->node_path_);
    bool may_lapse = false;
    switch (next_step(seen.value, self->facts(on))) {
        case node_step::create:
            self->forget_node();
            self->board_->tell(persistent_node_state::creating);
            co_return true;
        case node_step::new_name:
            self->forget_node();
            self->node_path_.clear();
            self->board_->tell(persistent_node_state::creating);
            co_return true;
        case node_step::remove:
            co_await remove_former(self, on, seen.value->version);
            co_return true;
        case node_step::write_data:
            // If the keeper leaves before the write has succeeded, a node that is ours has to be removed, too.
            if (seen.value->czxid != self->created_by_ && is_ours(*seen.value, self->facts(on)))
                self->outcome_unknown_ = true;
            co_await write(self, on, wish, *seen.value);
            co_return false;
        case node_step::wait_until_gone:
            self->forget_node();
            self->board_->tell(persistent_node_state::taken);
            break;
        case node_step::stay:
            self->board_->tell(persistent_node_state::standing, self->node_path_);
            may_lapse = has_ttl(self->options_.mode());
            break;
    }
    auto changed = [wish](std::error_code, node_change) { wish.fire(); };
    seen.changes.then(changed);
    auto until_wished = [&] { return wish.wait(); };
    if (!may_lapse) {
        co_await wish.wait();
        co_return false;
    }
    const bool wished = co_await run_with_deadline(self->next_touch(), until_wished);
    if (wished) co_return false;
    if (self->may_write_)
        co_await touch(self, on, wish);
    else
        self->written_at_ = boot_clock::now();  // look again: no watch tells of a node that may not be read
    co_return false;
}

// As Curator's PersistentTtlNode: twice in the time to live, which servers count from the last write. Servers do not
// tell the time to live of a node that was there before.
boot_clock::time_point node_keeper::next_touch() const noexcept {
    constexpr std::chrono::milliseconds least_pause(100);
    return written_at_ + std::max(options_.ttl() / 2, least_pause);
}

// Writes the node's present data into it again, whichever client has written them, so that the time to live starts
// over. Only if the node is the one that was seen.
asio::awaitable<void> node_keeper::touch(std::shared_ptr<node_keeper> self, session on, one_shot_event wish) {
    const auto now = boot_clock::now();
    try {
        const node_data is = co_await on.get(self->node_path_);
        if (is.stat.czxid != self->created_by_) co_return;
        co_await on.set(self->node_path_, is.data, is.stat.version);
        self->written_at_ = now;
        self->pauses_->reset();
        co_return;
    } catch (const error& e) {
        if (e.code() == zk_errc::bad_version) self->written_at_ = now;  // another client has written to it
        if (e.code() == zk_errc::no_auth) self->may_write_ = false;
        const bool is_settled =
            e.code() == zk_errc::bad_version || e.code() == zk_errc::no_auth || e.code() == zk_errc::no_node;
        if (is_settled) co_return;
        if (e.code() != condition::retryable && !e.outcome_unknown()) throw;
    }
    // The node stands as before; there is time for another attempt.
    co_await pause_unless(self, wish);
}

// Removes only the node that was seen, as far as a version can tell.
asio::awaitable<void> node_keeper::remove_former(std::shared_ptr<node_keeper> self, session on, std::int32_t version) {
    try {
        co_await on.remove(self->node_path_, version);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version) throw;
    }
}

asio::awaitable<void> node_keeper::remove(std::shared_ptr<node_keeper> self, session on) {
    if (!self->lost_id_.empty()) co_await find_lost(self, on);
    if (!self->has_no_name() && self->may_stand()) co_await remove_seen(on, self->node_path_, self->facts(on));
}

// Removes only the node that was seen, as far as a version can tell. If the outcome of the removal is unknown, all of
// this is to be repeated: our node may have gone, and another one may be there.
asio::awaitable<void> node_keeper::remove_seen(session on, std::string path, node_facts known) {
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        // A create whose answer was lost may have been applied, and this server not have heard of it.
        co_await on.sync(path);
        const std::optional<node_stat> seen = co_await on.exists(path);
        if (!seen || !is_ours(*seen, known)) co_return;
        try {
            co_await on.remove(path, seen->version);
            co_return;
        } catch (const error& e) {
            if (e.code() == zk_errc::no_node || e.code() == zk_errc::not_empty) co_return;
            if (e.code() != zk_errc::bad_version) throw;
        }
        co_await pauses.pause();
    }
}

// In the background, after the keeper has failed.
asio::awaitable<void> node_keeper::remove_left(session on, std::string path, node_facts known) {
    auto removed = [&] { return remove_seen(on, path, known); };
    co_await retry_until_certain(toolbox(on).make_back_off(), removed);
}

asio::awaitable<void> node_keeper::run(std::shared_ptr<node_keeper> self, session on) {
    if (!is_sequential(self->options_.mode()) && !self->claim_) {
        self->claim_ = co_await node_claim::get(on, self->board_);
        if (!self->claim_) {  // leaving, and another persistent_node has the claim
            self->forget_node();
            co_return;
        }
    }
    bool missing = true;  // assumed without a look: most often there is no node yet
    for (;;) {
        const one_shot_event wish = self->board_->next_wish();
        if (self->board_->leaving()) break;
        if (missing) co_await create(self, on, wish);
        missing = self->has_no_name();
        if (missing) continue;
        missing = co_await look(self, on, wish);
    }
    co_await remove(self, on);
    self->forget_node();
}

asio::awaitable<void> node_keeper::keep(std::shared_ptr<node_keeper> self, session on) {
    self->begin(on);
    std::exception_ptr failed;
    try {
        co_await run(self, on);
    } catch (...) {
        failed = std::current_exception();
    }
    self->running_ = false;
    self->running_until_ = boot_clock::now();
    if (!failed) co_return;
    if (on.over() && is_ephemeral(self->options_.mode())) self->forget_node();
    if (self->board_->leaving() && !self->may_stand()) co_return;
    self->board_->tell(persistent_node_state::creating);
    self->board_->attempt_failed(failed);
    std::rethrow_exception(failed);
}

namespace {

std::exception_ptr end_of_node(const std::exception_ptr& why, const std::string& path) {
    try {
        if (why) std::rethrow_exception(why);
    } catch (const error& e) {
        if (e.operation() == "persistent_node") return why;
        const bool session_ended = e.code() == condition::session_ended;
        return std::make_exception_ptr(
            error(e.code(), "persistent_node", path, session_ended ? "" : hint_of(e, path), e.outcome_unknown()));
    } catch (...) {
    }
    return why;
}

bool may_still_stand(const std::exception_ptr& why) {
    return why && failure_of(why) != condition::session_ended;
}

}  // namespace

void node_keeper::end(const std::exception_ptr& why) {
    std::exception_ptr failed;
    try {
        // After any failure, an ephemeral node without a keeper must not stay.
        if (is_ephemeral(options_.mode()) && may_still_stand(why)) {
            if (!lost_id_.empty())
                toolbox(last_).ensure_protected_removed(std::string(parent_path(board_->path())), lost_id_);
            else if (may_stand())
                toolbox(last_).run_in_background(remove_left(last_, node_path_, facts(last_)));
        }
    } catch (...) {
        failed = std::current_exception();
    }
    if (claim_) claim_->release(*board_);
    const std::string& path = has_no_name() ? board_->path() : node_path_;
    const bool stays = !why && given_up_ && may_stand();
    if (stays) log_warning(last_, path + ": the node stays: no server was in reach to remove it", {{"path", path}});
    board_->end(stays ? std::make_exception_ptr(error(errc::not_connected, "persistent_node", path, "the node stays"))
                      : end_of_node(why, board_->path()));
    if (failed) std::rethrow_exception(failed);
}

}  // namespace zkasio::membership_detail
