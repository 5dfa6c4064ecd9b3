// The part of lock_queue in which contenders leave: nodes are removed, locks handed over; or a writer becomes a reader.
#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <zkasio/locks/detail/queue/node_creation.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>

#include <asio/post.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio::lock_detail {
namespace {

// G26: how many contenders that share a lock one hand-over lets in and checks for, in bytes of their paths.
constexpr std::size_t most_checked_bytes = 100'000;

}  // namespace

void lock_queue::leave(const contender_ptr& c) {
    const stage was = c->now();
    if (has_given_up(was)) {
        if (c->leaving && c->leaving->over) c->tell_gone();
        return stop_waiting_for_bodies(c);
    }
    c->hold.end(true);
    const bool downgrades = was == stage::downgrading && !over_;  // G34: leaves after the downgrade
    const stage next = downgrades ? stage::downgrading_abandoned : after_giving_up(was);
    if (next != stage::left) c->depart().work = tools_.begin_background_work();
    go_to(c, next);
    if (downgrades) return;
    if (over_) return c->tell_gone();
    if (owns(was)) return release(c);
    decide(c, acquire_outcome::refused);
    if (was == stage::waiting_for_bodies) {
        std::erase(displaced_, c);
        queue_again_after_bodies();  // those behind this contender no longer wait for the removal of its node
    }
    if (was == stage::waiting) {
        order_.leave(c->at);
        remove(c);
        reconsider();
    } else if (c->creating && c->creating->request) {
        c->creating->request->withdraw();  // without effect if the create was sent: then G37
    }
}

// In a turn of its own, since the code that finds the loss may be at work on the queue.
void lock_queue::give_back_soon(const contender_ptr& c) {
    asio::post(on_.get_executor(), [c] { c->where->give_back(c); });
}

// G40: an owner whose hold is lost leaves at once, and does not wait for its guard to be given up.
void lock_queue::give_back(const contender_ptr& c) {
    const loss_reason why = c->node_deleted ? loss_reason::node_deleted : c->hold.reason();
    if (c->now() != stage::owner || why == loss_reason::none) return;
    if (over_ || !lost_in_session(why) || (c->asked.keeps_place && why != loss_reason::node_deleted)) return;
    c->depart().work = tools_.begin_background_work();
    if (c->bodies.any()) {
        unfinished_.push_back(c);
        unfinished_since_ = boot_clock::now();
    }
    go_to(c, stage::left);
    release(c);
}

void lock_queue::body_ended(const contender_ptr& c) {
    if (!c->bodies.any()) stop_waiting_for_bodies(c);
}

// G40: only a listing tells whether the nodes of the contenders that waited for the bodies were there all the time.
void lock_queue::stop_waiting_for_bodies(const contender_ptr& c) {
    if (std::erase(unfinished_, c) == 0) return;
    if (unfinished_.empty()) warned_of_bodies_ = false;
    order_.discard_listings();
    queue_again_after_bodies();
    reconsider();
}

bool lock_queue::waits_only_for_bodies(lock_kind newcomer) const {
    const auto node_may_be_there = [](const contender& owner) { return !owner.leaving->over; };
    return waits_for_body(newcomer) && !any_unfinished_excludes(newcomer, node_may_be_there);
}

// G40: a body may run for long, and nobody else would get the lock behind this place. As long as the node of the lost
// lock is there, the place keeps nobody out, and most bodies end in that time.
void lock_queue::give_place_up(const contender_ptr& c) {
    order_.leave(c->at);
    c->hold.end(true);
    c->hold = session_hold();
    go_to(c, stage::waiting_for_bodies);
    displaced_.push_back(c);
    remove(c);  // it queues again when this is answered: until then the order needs its name
}

// In the order in which they have lost their places.
void lock_queue::queue_again_after_bodies() {
    bool removed = true;  // the nodes of all earlier ones
    for (const contender_ptr& c : std::exchange(displaced_, {})) {
        const bool waits = waits_for_body(c->asked.kind);
        removed = removed && (waits || c->path.empty());
        if (waits || !removed)
            displaced_.push_back(c);
        else
            creation_.begin(c);
    }
}

void lock_queue::release(const contender_ptr& c) {
    order_.leave(c->at);
    // G25: without its node the owner did not keep other clients out, and has nothing to hand over.
    if (c->node_deleted || c->hold.reason() == loss_reason::node_deleted) order_.discard_listings();
    const std::vector<contender_ptr> successors = grant_to_successors();
    if (!successors.empty()) {
        contender::departure& departure = c->depart();
        if (!departure.work) departure.work = tools_.begin_background_work();  // kept until the last removal, see G24
        departure.successors.assign(successors.begin(), successors.end());
    }
    remove(c, successors);
    for (const contender_ptr& s : successors) {
        // If the removal was refused at once (the session has just ended, or this is a child process), the successor
        // has been told already.
        if (s->now() != stage::owner_unconfirmed) continue;
        start_lease(s);
        // G30: in a cut, with suspension_policy::lose, no contender has the lock. A successor that was told only now
        // would lose its place along with the lock. The successor has not relied on the lock yet, so the successor
        // keeps its place, and is told after the cut.
        if (s->hold.reason() != loss_reason::suspended) become_owner(s);
    }
    reconsider();
}

// The successors own the lock as soon as the removal of their predecessor's node is sent: requests of a session are
// served in order, and no other contender stands between the predecessor and the successors.
std::vector<contender_ptr> lock_queue::grant_to_successors() {
    std::vector<contender_ptr> successors;
    std::size_t bytes = 0;
    while (contender_ptr head = order_.head()) {
        if (order_.next().what != queue_order::verdict::granted || waits_for_body(head->asked.kind)) break;
        bytes += head->path.size();
        if (!successors.empty() && bytes > most_checked_bytes) {
            order_.discard_listings();  // G26: a listing decides on the others
            break;
        }
        order_.grant(head->at);
        head->handed_over = true;
        go_to(head, stage::owner_unconfirmed);
        successors.push_back(std::move(head));
    }
    return successors;
}

// G23: the removal is carried out only if the nodes of the successors are there.
void lock_queue::remove(const contender_ptr& c, const std::vector<contender_ptr>& successors) {
    std::vector<std::string> must_exist;
    must_exist.reserve(successors.size());
    for (const contender_ptr& s : successors) must_exist.push_back(s->path);
    const pending_removal removal = tools_.ensure_removed(c->path, std::move(must_exist));
    removal.then(
        [self = shared_from_this(), c, removal, successors] { self->removal_answered(c, removal, successors); });
}

void lock_queue::removal_answered(const contender_ptr& c, const pending_removal& removal,
                                  const std::vector<contender_ptr>& successors) {
    bool found = true;
    std::exception_ptr no_session;
    try {
        removal.get();
        found = removal.found();
    } catch (const error& e) {
        switch (answer_of_removal(e, over())) {
            case removal_answer::successor_missing:
                // G24: the node of a successor was deleted while the successor waited. The old node is still there, and
                // keeps all other clients out until the successor has been told.
                for (const contender_ptr& s : successors)
                    if (s->path == e.path()) lose_node(s);
                return remove(c, still_relying_on(successors));
            case removal_answer::session_over:
                no_session = std::make_exception_ptr(error(e.code(), "acquire", directory()));
                break;
            case removal_answer::failed: c->removal_failed(); break;
        }
    }
    removed(c, successors, found, no_session);
}

void lock_queue::removed(const contender_ptr& c, const std::vector<contender_ptr>& successors, bool found,
                         const std::exception_ptr& no_session) {
    const bool waited_for = order_.waits_for_departure();
    order_.departed(c->at);
    c->tell_gone();
    if (c->now() == stage::left) decide(c, acquire_outcome::refused);  // a refused try, which has not been told yet
    if (c->now() == stage::waiting_for_bodies) {
        c->path.clear();
        queue_again_after_bodies();
    }
    // G27: perhaps the node had been gone for long, together with the whole directory. Then the nodes of later
    // contenders, the successors among them, are in a new directory, where another client may stand before them.
    const bool in_doubt = !over_ && !found;
    if (in_doubt) {
        order_.doubt_owners();
        for (const contender_ptr& s : successors)
            if (s->now() == stage::owner_unconfirmed) lose_node(s);  // G29: `s` starts over
    }
    confirm(successors, no_session);
    if (waited_for || in_doubt || !unfinished_.empty()) reconsider();  // G16, G27: list now; G40
}

// G24: of the contenders that were handed the lock, by its old owner or by each other, those that have the lock now and
// do not know of a loss.
std::vector<contender_ptr> lock_queue::still_relying_on(std::vector<contender_ptr> successors) {
    std::vector<contender_ptr> owners;
    while (!successors.empty()) {
        const contender_ptr c = std::move(successors.back());
        successors.pop_back();
        const bool relies = c->now() == stage::owner_unconfirmed || c->hold.reason() == loss_reason::none;
        if (owns(c->now()) && relies) owners.push_back(c);
        if (c->now() != stage::left || !c->leaving) continue;
        for (const auto& successor : c->leaving->successors)
            if (contender_ptr s = successor.lock()) successors.push_back(std::move(s));
    }
    return owners;
}

// G30: the removal that has made the successors owners is answered. @param no_session set if the removal was not
// carried out because the session is over.
void lock_queue::confirm(const std::vector<contender_ptr>& successors, const std::exception_ptr& no_session) {
    for (const contender_ptr& c : successors) {
        if (c->now() != stage::owner_unconfirmed) continue;
        if (!no_session) {
            become_owner(c);
            continue;
        }
        go_to(c, stage::owner);
        decide(c, acquire_outcome::failed, fresh_copy_of(no_session));
    }
}

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
        if (!node) {  // G25: the writer's node was gone
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
