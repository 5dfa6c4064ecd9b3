#include <zkasio/membership/detail/node_keeper.hpp>

#include <zkasio/error.hpp>

#include <optional>
#include <utility>

namespace zkasio::membership_detail {

node_keeper::node_keeper(std::shared_ptr<node_board> board, persistent_node_options options)
    : board_(std::move(board)), options_(std::move(options)) {
    if (!is_sequential(options_.mode())) node_path_ = board_->path();
}

void node_keeper::forget_node() noexcept {
    created_by_ = 0;
    outcome_unknown_ = false;
}

void node_keeper::begin(const session& on) {
    running_ = true;
    if (on.id() == last_.id()) return;
    claim_.reset();
    // What a session has owned goes with it, if not at once: one that was given up with no server in reach may live on.
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
    known.has_new_data = board_->data().requests > 0;
    return known;
}

create_options node_keeper::how_to_create() const {
    create_options how;
    how.mode(options_.mode()).ttl(options_.ttl()).acl(options_.acl()).parents(options_.parents());
    if (has_no_name()) return how.protection();
    switch (options_.mode()) {  // with the name that it has got
        case create_mode::ephemeral_sequential: return how.mode(create_mode::ephemeral);
        case create_mode::persistent_sequential: return how.mode(create_mode::persistent);
        case create_mode::persistent_sequential_ttl: return how.mode(create_mode::persistent_ttl);
        default: return how;
    }
}

void node_keeper::stands(const node_stat& node, node_board::wished_data data) {
    created_by_ = node.czxid;
    outcome_unknown_ = false;
    board_->wrote(std::move(data));
    board_->tell(persistent_node_state::standing, node_path_);
}

// Whether it is the data of set_data() that a server does not take: then those who asked are told, and it goes on.
bool node_keeper::refuses_data(const error& why, const node_board::wished_data& data) const {
    const bool for_good = why.code() != condition::retryable && why.code() != condition::session_ended &&
                          why.code() != condition::cancelled;
    if (!for_good || data.requests == 0) return false;
    board_->refused(data, std::make_exception_ptr(error(why.code(), "set_data", node_path_, why.what())));
    return true;
}

asio::awaitable<void> node_keeper::create(std::shared_ptr<node_keeper> self, session on) {
    node_board::wished_data data = self->board_->data();
    const bool was_unknown = self->outcome_unknown_;
    // A create without a name is certain, or tidies up behind itself (protection).
    self->outcome_unknown_ = was_unknown || !self->has_no_name();
    const std::string path = self->has_no_name() ? self->board_->path() : self->node_path_;
    const create_options how = self->how_to_create();
    try {
        const created made = co_await on.create(path, data.data, how);
        self->node_path_ = made.path;
        self->stands(made.stat, std::move(data));
        co_return;
    } catch (const error& e) {
        if (!e.outcome_unknown()) self->outcome_unknown_ = was_unknown;
        if (e.code() == errc::too_large && self->refuses_data(e, data)) co_return;
        const bool parent_is_gone = e.code() == zk_errc::no_node && self->options_.parents() != missing_parents::fail;
        if (e.code() != zk_errc::node_exists && !parent_is_gone) throw;
    }
    // This server may not have heard yet of the node that is in the way.
    co_await on.sync(path);
}

asio::awaitable<void> node_keeper::write(std::shared_ptr<node_keeper> self, session on) {
    node_board::wished_data data = self->board_->data();
    try {
        const node_stat now = co_await on.set(self->node_path_, data.data);
        self->stands(now, std::move(data));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && !self->refuses_data(e, data)) throw;
    }
}

// Looks at the node, acts, or waits until something changes. True: it is to be created.
asio::awaitable<bool> node_keeper::look(std::shared_ptr<node_keeper> self, session on, one_shot_event wish) {
    const watched<std::optional<node_stat>> seen = co_await on.exists_and_watch(self->node_path_);
    switch (next_step(seen.value, self->facts(on))) {
        case node_step::create:
            self->created_by_ = 0;
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
            co_await write(self, on);
            co_return false;
        case node_step::wait_until_gone:
            self->created_by_ = 0;
            self->board_->tell(persistent_node_state::taken);
            break;
        case node_step::stay:
            self->board_->tell(persistent_node_state::standing, self->node_path_);
            break;
    }
    auto changed = [wish](std::error_code, node_change) { wish.fire(); };
    seen.changes.then(changed);
    co_await wish.wait();
    co_return false;
}

// Only if it is the node that was seen, as far as a version can tell.
asio::awaitable<void> node_keeper::remove_former(std::shared_ptr<node_keeper> self, session on, std::int32_t version) {
    try {
        co_await on.remove(self->node_path_, version);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version) throw;
    }
}

asio::awaitable<void> node_keeper::remove(std::shared_ptr<node_keeper> self, session on) {
    if (self->has_no_name() || !self->may_stand()) co_return;
    // A create whose answer was lost may have been applied, and this server not have heard of it.
    co_await on.sync(self->node_path_);
    const std::optional<node_stat> seen = co_await on.exists(self->node_path_);
    if (!seen || !is_ours(*seen, self->facts(on))) co_return;
    const pending_removal removal = on.ensure_removed(self->node_path_);
    try {
        co_await removal.result();
    } catch (const error& e) {
        if (e.code() != zk_errc::not_empty) throw;
    }
}

asio::awaitable<void> node_keeper::run(std::shared_ptr<node_keeper> self, session on) {
    if (!is_sequential(self->options_.mode()) && !self->claim_)
        self->claim_ = co_await node_claim::get(on, self->board_);
    bool missing = true;  // without a look: most often it is
    for (;;) {
        const one_shot_event wish = self->board_->next_wish();
        if (self->board_->leaving()) break;
        if (missing) co_await create(self, on);
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
    if (!failed) co_return;
    if (on.over() && is_ephemeral(self->options_.mode())) self->forget_node();
    if (self->board_->leaving() && !self->may_stand()) co_return;
    self->board_->tell(persistent_node_state::creating);
    std::rethrow_exception(failed);
}

namespace {

std::exception_ptr end_of_node(const std::exception_ptr& why, const std::string& path) {
    try {
        if (why) std::rethrow_exception(why);
    } catch (const error& e) {
        if (e.operation() == "persistent_node") return why;
        const bool session_ended = e.code() == condition::session_ended;
        return std::make_exception_ptr(error(e.code(), "persistent_node", path, session_ended ? "" : e.what()));
    } catch (...) {
    }
    return why;
}

bool may_still_stand(const std::exception_ptr& why) {
    try {
        if (why) std::rethrow_exception(why);
    } catch (const std::system_error& e) {
        return e.code() != condition::session_ended;
    } catch (...) {
        return true;
    }
    return false;
}

}  // namespace

void node_keeper::end(const std::exception_ptr& why) {
    // Whatever it was that went wrong, a node that nobody keeps must not stand.
    if (is_ephemeral(options_.mode()) && may_stand() && may_still_stand(why)) last_.ensure_removed(node_path_);
    if (claim_) claim_->release(*board_);
    board_->end(end_of_node(why, board_->path()));
}

}  // namespace zkasio::membership_detail
