#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>

#include <cassert>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {

lock_queue::lock_queue(session on, lock_spec_ptr lock)
    : on_(std::move(on)),
      tools_(on_),
      lock_(std::move(lock)),
      order_(lock_->names),
      creation_(*this),
      listing_(*this),
      followed_(*this),
      positions_(*this) {}

std::shared_ptr<lock_queue> lock_queue::of(const session& on, const lock_spec_ptr& lock) {
    const auto make = [&] { return std::make_shared<lock_queue>(on.patient(), lock); };
    return std::static_pointer_cast<lock_queue>(toolbox(on).local(lock->key, make));
}

// ----------------------------------------------------------------------------------------------------- entering

void lock_queue::enter(const contender_ptr& c, const asio::any_io_executor& from) {
    if (over_) return fail(c, ended("acquire", directory()));
    const bool excluded = waits_for_body(c->asked.kind) || order_.excludes(c->asked.kind);
    if (c->asked.when_contended == if_contended::give_up && excluded) return refuse_beside_owner(c);
    if (waits_for_itself(c->asked.kind, from))
        return fail(c, std::make_exception_ptr(error(errc::would_deadlock, "acquire", directory(), holds_it_already)));
    create_node(c);
}

void lock_queue::create_node(const contender_ptr& c) {
    if (!waits_for_body(c->asked.kind)) return creation_.begin(c);
    if (c->asked.when_contended == if_contended::give_up) return refuse(c);  // G36
    go_to(c, stage::waiting_for_bodies);
    displaced_.push_back(c);
}

// A body of an owner that excludes the newcomer runs on `from`, an executor that no other work uses.
bool lock_queue::waits_for_itself(lock_kind kind, const asio::any_io_executor& from) const {
    const auto runs_there = [&](const contender& owner) { return owner.bodies.on(from); };
    return order_.any_owner_excludes(kind, runs_there) || any_unfinished_excludes(kind, runs_there);
}

contender_ptr lock_queue::reader_joined_by(lock_kind newcomer) const {
    const contender_ptr first = newcomer == lock_kind::shared ? order_.first_owner() : nullptr;
    return first && first->asked.kind == lock_kind::shared ? first : nullptr;
}

void lock_queue::node_created(const contender_ptr& c, const created& node) {
    c->path = node.path;
    c->czxid = node.stat.czxid;
    try {
        c->at = order_.enter(node_name(c->path), c, c->asked_at);
    } catch (...) {  // the server has not numbered the node as it should
        c->path.clear();
        fail(c, std::current_exception());
        tools_.ensure_removed(node.path);
        return;
    }
    if (has_given_up(c->now())) {  // G37: no longer wanted
        go_to(c, stage::left);
        order_.leave(c->at);
        remove(c);
    } else {
        c->queue_length = static_cast<std::uint32_t>(order_.size() - 1);
        go_to(c, stage::waiting);
    }
    // G32: a reader right behind readers of this session that hold the lock owns it without a listing. The order is a
    // proof only if the first reader's node is known to have been in this directory when the newcomer's was created.
    if (const contender_ptr reader = reader_joined_by(c->asked.kind))
        if (!reader->hold.held() || !reader->hold.nodes_watched()) order_.discard_listings_before(c->asked_at);
    reconsider();
}

// ------------------------------------------------------------------------------------------------------- telling

// Keeps the data that depends on the stages of many contenders: how many enter, which waiters are try_acquires, and
// which waiters observe their positions.
void lock_queue::go_to(const contender_ptr& c, stage next) {
    const stage was = c->now();
    c->go_to(next);
    assert(entering_ > 0 || !is_entering(was));
    entering_ += is_entering(next);
    entering_ -= is_entering(was);
    if (next == stage::waiting) {
        if (c->asked.when_contended == if_contended::give_up) try_acquires_.emplace(c->at, c);
        positions_.add(c);
    } else if (was == stage::waiting) {
        try_acquires_.erase(c->at);
        positions_.remove(c);
    }
    if (next == stage::left && c->outcome == acquire_outcome::granted) report_hold(on_, directory(), *c);
}

void lock_queue::start_lease(const contender_ptr& c) {
    if (c->node_deleted || c->hold.reason() == loss_reason::none) return;
    c->hold = on_.hold(c->path);
    c->hold.on_lost([weak = std::weak_ptr<contender>(c)](loss_reason why) {
        if (const contender_ptr lost = weak.lock()) lost->where->hold_lost(lost, why);
    });
}

// From here on the contender's coroutine knows that the contender has the lock.
void lock_queue::become_owner(const contender_ptr& c) {
    go_to(c, stage::owner);
    start_lease(c);
    if (!over_) tools_.now_holds(c->path);
    if (c->hold.reason() != loss_reason::none) give_back_soon(c);
    decide(c, acquire_outcome::granted);
}

void lock_queue::hold_lost(const contender_ptr& c, loss_reason why) {
    if (c->now() == stage::waiting && why == loss_reason::node_deleted) {
        deleted(c);
        reconsider();
    } else if (c->now() == stage::owner) {
        give_back_soon(c);
    }
}

// Without a node, of which an owner that only keeps the lock would hear.
void lock_queue::refuse_beside_owner(const contender_ptr& c) {
    const contender_ptr owner = order_.first_owner();
    if (auto user = owner ? owner->asked.user.lock() : nullptr)
        asio::post(on_.get_executor(), [user = std::move(user)] { user->tried(); });
    refuse(c);
}

void lock_queue::refuse(const contender_ptr& c) {
    if (c->now() != stage::left) go_to(c, stage::left);
    decide(c, acquire_outcome::refused);
}

void lock_queue::fail(const contender_ptr& c, std::exception_ptr why) {
    if (c->now() != stage::left) go_to(c, stage::left);
    decide(c, acquire_outcome::failed, std::move(why));
}

// Tells the contender's coroutine the outcome; once.
void lock_queue::decide(const contender_ptr& c, acquire_outcome how, std::exception_ptr why) {
    if (c->outcome != acquire_outcome::undecided) return;
    assert((how == acquire_outcome::granted) == (c->now() == stage::owner && !why));
    if (c->asked.observed) c->asked.observed->end();
    c->outcome = how;
    c->failed = std::move(why);
    report_wait(on_, directory(), *c);
    c->decided.fire();
    // In a turn of its own: this code may be at work on the queue.
    if (auto user = c->asked.user.lock()) asio::post(on_.get_executor(), [user = std::move(user)] { user->decided(); });
}

// The contender's node was deleted, and not by this session.
void lock_queue::deleted(const contender_ptr& c) {
    if (owns(c->now())) return lose_node(c);
    if (c->now() != stage::waiting) return;
    order_.node_deleted(c->at);
    c->hold = session_hold();
    if (!over_) tools_.is_gone(c->path);
    c->path.clear();
    create_node(c);  // G38: at the end of the queue
}

void lock_queue::lose_node(const contender_ptr& owner) {
    owner->node_deleted = true;
    owner->hold.lose(loss_reason::node_deleted);
    if (owner->now() == stage::owner_unconfirmed)
        become_owner(owner);  // G29: its coroutine is told, finds no lease, and starts over
    else
        give_back_soon(owner);
}

void lock_queue::fail_waiting(std::exception_ptr why) {
    try {
        std::rethrow_exception(why);
    } catch (const error& e) {  // names a listing or a watch: if the session has ended, name the acquire
        if (e.code() == condition::session_ended)
            why = std::make_exception_ptr(error(e.code(), "acquire", directory()));
    } catch (...) {
    }
    for (const contender_ptr& c : order_.waiting()) {
        order_.leave(c->at);
        remove(c);
        fail(c, fresh_copy_of(why));
    }
}

// ------------------------------------------------------------------------------------------------------ deciding

queue_situation lock_queue::situation() const {
    queue_situation s;
    if (!order_.head()) return s;
    s.head = order_.next();
    const lock_kind kind = order_.head()->asked.kind;
    if (s.head->what == queue_order::verdict::granted && waits_for_body(kind)) {
        s.head->what = queue_order::verdict::local;  // G40: a body of this session still runs
        s.only_bodies_in_the_way = waits_only_for_bodies(kind);
    }
    s.has_readers = names().has_shared();
    s.try_acquires_wait = !try_acquires_.empty();
    const std::vector<std::string>& blockers = s.head->blockers;
    const auto not_to_follow = [this](const std::string& name) { return may_be_ours(name); };
    s.blocker_may_be_ours = std::any_of(blockers.begin(), blockers.end(), not_to_follow);
    s.later = order_.next_blockers(queue_order::most_followed - blockers.size());
    std::erase_if(s.later, not_to_follow);
    return s;
}

bool lock_queue::may_be_ours(const std::string& name) const {
    return !expected_nodes_.empty() &&
           expected_nodes_.contains(name.substr(0, name.size() - names().digits(name).size()));
}

void lock_queue::reconsider() {
    if (order_.owners_doubted()) ask_for_listing();  // G27: a listing tells which owners have lost the lock
    for (bool again = true; again;) {
        const contender_ptr head = order_.head();
        again = carry_out(decide_next_step(situation()), head);
    }
    if (!order_.head()) followed_.stop();
    positions_.tell();
    warn_later();
}

// Whether the situation has changed, so that another step may follow.
bool lock_queue::carry_out(const next_step& step, const contender_ptr& head) {
    using what = next_step::what;
    switch (step.action) {
        case what::nothing: return false;
        case what::grant:
            order_.grant(head->at);
            become_owner(head);
            return true;
        case what::ask_for_listing:
            // The contenders in between may be gone before the listing: a lock can change hands in less time.
            if (head->queue_length > 0) head->behind_gap = true;
            ask_for_listing();
            return false;
        case what::refuse_try_acquires:
            remove_orphans();
            refuse_try_acquires();
            return true;
        case what::give_place_up: give_place_up(head); return true;
        case what::wait: break;
    }
    // A head whose turn may come without a listing starts its lease early: the grant costs no round trip, and the
    // contender learns when its node is deleted. Contenders far behind do not need a lease.
    if (step.start_lease) start_lease(head);
    // G19: our own node is watched before the nodes in the way, so that their removal is not told before the removal of
    // our own node.
    if (step.watch_own_node) head->hold.watch_nodes();
    followed_.follow(step.follow, step.waits_for_remote);
    if (!step.waits_for_remote) return false;
    remove_orphans();
    if (!head->followed) head->queue_length = static_cast<std::uint32_t>(order_.look_at(head->at).position);
    head->followed = true;
    return false;
}

// G41: until they are gone, these nodes keep us out as those of another client do.
void lock_queue::remove_orphans() {
    if (std::exchange(orphans_sought_, true)) return;
    tools_.remove_orphans(lock_->key, directory(), [lock = lock_](const std::string& name) {
        const queue_names& names = lock->names;
        return sequence_of(name, names.exclusive()) || (names.has_shared() && sequence_of(name, names.shared()));
    });
}

// G36: the head has to wait, and with it all contenders behind it. They are told when their nodes are gone, see
// removed(): until then the nodes keep others out.
void lock_queue::refuse_try_acquires() {
    for (const auto& [at, c] : std::exchange(try_acquires_, {})) {
        order_.leave(at);
        go_to(c, stage::left);
        remove(c);
    }
}

void lock_queue::ask_for_listing() {
    if (!order_.waits_for_departure()) listing_.ask();  // G16: otherwise one is asked for later
}

void lock_queue::listed(const std::vector<std::string>& names, std::uint64_t number) {
    queue_order::findings ours;
    try {
        ours = order_.listed(names, number);
    } catch (...) {  // a name that cannot be ordered
        return listing_failed(std::current_exception());
    }
    for (const contender_ptr& c : ours.missing) deleted(c);      // G4: their nodes are gone
    for (const contender_ptr& c : ours.overtaken) lose_node(c);  // G27: others stand ahead
    reconsider();
}

void lock_queue::listing_failed(const std::exception_ptr& why) {
    std::vector<contender_ptr> doubted;
    if (order_.owners_doubted()) doubted = order_.take_doubted_owners();
    fail_waiting(why);
    for (const contender_ptr& c : doubted) lose_node(c);  // G27
    reconsider();
}

void lock_queue::followed_gone(const std::string& name) {
    order_.removed(name);
    if (const contender_ptr head = order_.head()) {
        const queue_order::step now = order_.next();
        const bool others_followed =
            now.all && std::all_of(now.blockers.begin(), now.blockers.end(),
                                   [this](const std::string& b) { return followed_.follows(b); });
        // G20: if the head's own node had been deleted before, the watch on the head's own node would have told.
        const bool own_node_proven = head->hold.held() && head->hold.nodes_watched();
        if (needs_listing(now.what, names().has_shared(), others_followed, own_node_proven)) order_.discard_listings();
    }
    reconsider();
}

// ------------------------------------------------------------------------------------------------ session's end

std::exception_ptr lock_queue::ended(std::string_view operation, const std::string& path) const {
    return std::make_exception_ptr(error(over_, operation, path));
}

void lock_queue::session_over(std::error_code why) noexcept {
    over_ = why;
    followed_.stop();
    unfinished_.clear();
    warning_timer_.reset();
    for (const contender_ptr& c : order_.clear()) fail(c, ended("acquire", directory()));
    for (const contender_ptr& c : creation_.take_waiting()) fail(c, ended("acquire", directory()));
    for (const contender_ptr& c : std::exchange(displaced_, {})) fail(c, ended("acquire", directory()));
    assert(order_.empty() && try_acquires_.empty());
}

// The place of a semaphore's request is owned while the request waits.
bool lock_queue::waits() noexcept {
    if (over_) return false;
    return entering_ > 0 || !displaced_.empty() || !expected_nodes_.empty() || order_.any_waiting() ||
           order_.any_owner_excludes(lock_kind::exclusive, [](const contender& c) { return c.asked.keeps_place; });
}

// Contenders and their queue keep each other alive.
void lock_queue::loop_over() noexcept {
    order_.clear();
    unfinished_.clear();
    warning_timer_.reset();
    creation_.take_waiting();
    displaced_.clear();
    positions_.clear();
    try_acquires_.clear();
}

// A guard of this client that no body uses, and that the head waits for: perhaps the waiting coroutine has it.
contender_ptr lock_queue::guard_in_the_way(boot_clock::time_point since_at_least) const {
    const contender_ptr head = order_.head();
    contender_ptr owner = head && head->since <= since_at_least ? order_.first_owner() : nullptr;
    if (!owner || owner->now() != stage::owner || owner->asked.keeps_place || owner->bodies.any()) return nullptr;
    std::optional<boot_clock::time_point> since = owner->since;
    if (const auto user = owner->asked.user.lock()) since = user->idle_guard_since();
    return since && *since <= since_at_least ? owner : nullptr;
}

void lock_queue::warn_later() {
    if (warning_timer_ || over_) return;
    const bool waits = !warned_of_guard_ && order_.any_waiting() && order_.first_owner();
    const bool bodies = !warned_of_bodies_ && !unfinished_.empty();
    if (!waits && !bodies) return;
    warning_timer_.emplace(on_.get_executor(), long_wait);
    warning_timer_->async_wait([weak = weak_from_this()](std::error_code cancelled) {
        const auto self = cancelled ? nullptr : weak.lock();
        if (!self) return;
        self->warning_timer_.reset();
        self->warn();
        self->warn_later();
    });
}

void lock_queue::warn() {
    const boot_clock::time_point now = boot_clock::now();
    const contender_ptr owner = warned_of_guard_ ? nullptr : guard_in_the_way(now - long_wait);
    if (owner) {
        warned_of_guard_ = true;
        warn_of_guard(on_, directory(), owner->path);
    }
    if (warned_of_bodies_ || unfinished_.empty() || now - unfinished_since_ < long_wait) return;
    warned_of_bodies_ = true;
    for (const contender_ptr& c : unfinished_)
        log_warning(on_,
                    directory() + ": a body still runs 10 s or more after its lock, with the node " + c->path +
                        ", was lost: acquires of this client wait for its end",
                    {{"path", directory()}, {"node", c->path}});
}

}  // namespace zkasio::lock_detail
