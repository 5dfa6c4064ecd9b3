#include <zkasio/locks/detail/lock_queue.hpp>

#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/path.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <stdexcept>

namespace zkasio::lock_detail {
namespace {

// How many of those who share a lock one hand-over lets in, and checks for, at once: in bytes of their paths, so that the
// transaction stays small. The others follow from a listing.
constexpr std::size_t most_checked_bytes = 100'000;

// For one of several who fail for the same reason, on threads of their own: an exception is nothing to share.
std::exception_ptr copy_of(const std::exception_ptr& failed) {
    if (!failed) return nullptr;
    try {
        std::rethrow_exception(failed);
    } catch (const error& e) {
        return std::make_exception_ptr(error(e));
    } catch (const std::system_error& e) {
        return std::make_exception_ptr(std::system_error(e));
    } catch (const std::bad_alloc&) {
        return std::make_exception_ptr(std::bad_alloc());
    } catch (...) {
        return failed;
    }
}

asio::awaitable<void> observer_failed(std::string directory, std::exception_ptr why) {
    std::string text = "an exception of unknown type";
    try {
        std::rethrow_exception(why);
    } catch (const std::exception& e) {
        text = e.what();
    } catch (...) {
    }
    throw std::runtime_error("on_position of " + directory + ": " + text);
    co_return;
}

}  // namespace

std::shared_ptr<lock_queue> lock_queue::of(const session& on, const lock_spec& lock) {
    const auto make = [&] { return std::make_shared<lock_queue>(on, lock.directory, lock.names); };
    const std::string key = "lock_queue " + lock.names.key() + ' ' + lock.directory;
    return std::static_pointer_cast<lock_queue>(on.local(key, make));
}

// ----------------------------------------------------------------------------------------------------- entering

void lock_queue::enter(const contender_ptr& c, const asio::any_io_executor& from) {
    if (over_) return fail(c, ended("acquire", directory_));
    const auto anyhow = [](const contender&) { return true; };
    const bool excluded = c->asked.join_readers ? order_.any_owner_excludes(c->asked.kind, anyhow) : order_.excludes(c->asked.kind);
    if (c->asked.when_contended == if_contended::give_up && excluded) return refuse(c);
    if (waits_for_itself(c->asked.kind, from)) return fail(c, itself());
    if (!c->asked.join_readers) return begin_create(c);
    go_to(c, stage::joining);
    on_.run_in_background(join_readers(shared_from_this(), c));
}

// The work under a lock asks for it again, on the executor that nobody else uses.
bool lock_queue::waits_for_itself(lock_kind kind, const asio::any_io_executor& from) const {
    return order_.any_owner_excludes(kind, [&](const contender& owner) { return owner.bodies.on(from); });
}

std::exception_ptr lock_queue::itself() const {
    return std::make_exception_ptr(error(errc::would_deadlock, "acquire", directory_, holds_it_already));
}

// The session is over. Made anew for each who is told.
std::exception_ptr lock_queue::ended(std::string_view operation, const std::string& path) const {
    return std::make_exception_ptr(error(over_, operation, path));
}

// For an owner: the session takes the lock along.
std::exception_ptr lock_queue::ended_while_held(std::string_view operation, const std::string& path) const {
    if (over_ == errc::client_closed) return ended(operation, path);
    return std::make_exception_ptr(error(errc::lock_lost, operation, path, to_string(loss_reason::session_expired)));
}

void lock_queue::adopt(const contender_ptr& c, const std::string& path, const asio::any_io_executor& from) {
    c->path = path;
    if (over_) return fail(c, ended("acquire", directory_));
    if (waits_for_itself(c->asked.kind, from)) {
        on_.ensure_removed(path);
        return fail(c, itself());
    }
    c->asked_at = order_.begin_create();
    created node;
    node.path = path;
    entered(c, node);
}

// Keeps what depends on the stages of many: how many enter, and those of the waiters who want to be told something.
void lock_queue::go_to(const contender_ptr& c, stage next) {
    const stage was = c->now();
    c->go_to(next);
    entering_ += is_entering(next);
    entering_ -= is_entering(was);
    if (next == stage::waiting) {
        if (c->asked.when_contended == if_contended::give_up) impatient_.emplace(c->at, c);
        if (c->asked.observed) observed_.emplace(c->at, c);
    } else if (was == stage::waiting) {
        impatient_.erase(c->at);
        observed_.erase(c->at);
    }
}

// Of our readers who hold the lock, and whom this newcomer joins, the first.
contender_ptr lock_queue::joined_by(lock_kind newcomer) const {
    const contender_ptr first = newcomer == lock_kind::shared ? order_.first_owner() : nullptr;
    return first && first->asked.kind == lock_kind::shared ? first : nullptr;
}

void lock_queue::begin_create(const contender_ptr& c) {
    // Should somebody have deleted its node, and the directory, that is told before the create is answered.
    if (const contender_ptr reader = joined_by(c->asked.kind); reader && reader->hold) reader->hold->watch_nodes();
    go_to(c, stage::creating);
    // Nobody of ours is there who could tell us where we stand: then the listing leaves together with the create.
    const bool alone = order_.empty() && entering_ == 1;
    try {
        create_options options;
        options.mode(create_mode::ephemeral_sequential).acl(c->asked.spec->acl);
        c->creating = std::make_unique<contender::creation>();
        c->asked_at = order_.begin_create();
        c->creating->id = names_.new_id();  // never used twice: somebody may still be looking for the old one
        const std::string path = join_path(directory_, names_.prefix(c->creating->id, c->asked.kind));
        c->creating->request.emplace(on_.start_create(path, bytes(c->asked.spec->data), options));
    } catch (...) {
        c->creating.reset();
        return fail(c, std::current_exception());
    }
    c->creating->request->then([self = shared_from_this(), c] { self->creation_answered(c); });
    if (alone) look();
}

// Unless it has failed, or was given up meanwhile.
void lock_queue::create_unless(const contender_ptr& c, std::exception_ptr failed) {
    if (failed) return fail(c, std::move(failed));
    if (has_given_up(c->now())) return refuse(c);
    begin_create(c);
}

void lock_queue::creation_answered(const contender_ptr& c) {
    created node;
    std::exception_ptr failed;
    bool lost = false, orphan = false, refused = false;
    try {
        node = c->creating->request->get();
    } catch (const error& e) {
        failed = std::current_exception();
        lost = e.outcome_unknown() && e.code() == condition::retryable;
        orphan = e.code() == zk_errc::no_node;
        refused = e.code() == zk_errc::throttled;
    }
    const std::string id = std::exchange(c->creating, nullptr)->id;
    if (over_) return fail(c, ended("acquire", directory_));
    if (!failed) before_creating_.reset();
    if (!failed) return entered(c, node);
    if (lost) return begin_search(c, id);
    if (has_given_up(c->now()) || !(orphan || refused)) return fail(c, failed);
    if (refused) return create_later(c);
    want_parent(c);
}

void lock_queue::create_later(const contender_ptr& c) {
    go_to(c, stage::throttled);
    refused_.push_back(c);
    if (refused_.size() > 1) return;  // the pause has begun
    before_creating_.then(on_.get_executor(), [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        for (const contender_ptr& waiting : std::exchange(self->refused_, {}))
            self->create_unless(waiting, nullptr);
    });
}

// The answer to the create was lost: is there a node? Whoever has given up meanwhile has to know, too. One cut may lose thousands of
// answers, so one search serves all that were lost before it began.
void lock_queue::begin_search(const contender_ptr& c, std::string id) {
    if (!has_given_up(c->now())) go_to(c, stage::creation_lost);
    arriving_.insert(names_.prefix(id, c->asked.kind));
    lost_.push_back({c, std::move(id)});
    if (!std::exchange(searching_, true)) on_.run_in_background(search(shared_from_this()));
}

asio::awaitable<void> lock_queue::search(std::shared_ptr<lock_queue> self) {
    back_off pauses = self->on_.make_back_off();
    while (!self->lost_.empty()) {
        co_await asio::post(self->on_.get_executor(), asio::use_awaitable);  // all that are lost in one turn belong together
        const bool complete = co_await self->search_once();
        if (complete)
            pauses.reset();
        else
            co_await pauses.pause();
    }
    self->searching_ = false;
}

// False: some are to be looked for again.
asio::awaitable<bool> lock_queue::search_once() {
    const std::vector<lost_create> round = std::exchange(lost_, {});
    std::vector<std::string> ids;
    for (const lost_create& l : round) ids.push_back(l.id);
    std::multimap<std::string, std::string> names;
    std::exception_ptr failed;
    try {
        names = co_await on_.find_all_protected(directory_, std::move(ids));
    } catch (...) {
        failed = std::current_exception();
    }
    // Nobody else uses such an id: a node with one is ours. A token needs a look at it; who has left needs none.
    std::vector<std::pair<lost_create, pending_data>> looked_at;
    for (const lost_create& l : round) {
        const auto it = names.find(l.id);
        if (failed || it == names.end()) {
            search_ended(l, std::nullopt, failed);
            continue;
        }
        created node;
        node.path = join_path(directory_, it->second);
        l.who->path = node.path;
        if (has_given_up(l.who->now())) {
            search_ended(l, node, nullptr);
            continue;
        }
        if (l.who->now() != stage::creation_found) go_to(l.who, stage::creation_found);
        looked_at.emplace_back(l, on_.start_exists(node.path));
    }
    bool complete = true;
    for (const auto& [l, reading] : looked_at) {
        std::exception_ptr unreadable;
        std::optional<created> node(std::in_place);
        node->path = l.who->path;
        bool again = false;
        try {
            const node_data seen = co_await reading.result();
            node->stat = seen.stat;
        } catch (const error& e) {
            again = e.code() == condition::retryable;
            if (e.code() == zk_errc::no_node)
                node.reset();  // somebody has deleted it since
            else if (!again)
                unreadable = std::current_exception();
        } catch (...) {
            unreadable = std::current_exception();
        }
        complete = complete && !again;
        if (again)
            lost_.push_back(l);  // by the next search
        else
            search_ended(l, node, unreadable);
    }
    co_return complete;
}

// The node is there, or it is not, or that could not be found out.
void lock_queue::search_ended(const lost_create& l, std::optional<created> found, const std::exception_ptr& failed) {
    const contender_ptr& c = l.who;
    arriving_.erase(names_.prefix(l.id, c->asked.kind));
    if (!over_ && !failed && found) {
        c->asked_at = order_.begin_create();  // as if: when it was carried out is not known
        order_.forget();                      // so is who stood before it since then
        return entered(c, *found);
    }
    if (failed && !over_ && !c->path.empty()) on_.ensure_removed(c->path);
    c->path.clear();
    create_unless(c, over_ ? ended("acquire", directory_) : copy_of(failed));
    reconsider();  // whoever has seen the node, and left it alone, looks again
}

void lock_queue::want_parent(const contender_ptr& c) {
    go_to(c, stage::waiting_for_directory);
    order_.forget();  // there is no queue
    orphans_.push_back(c);
    if (!std::exchange(making_parent_, true)) on_.run_in_background(make_parent(shared_from_this(), c->asked.spec->acl));
}

asio::awaitable<void> lock_queue::make_parent(std::shared_ptr<lock_queue> self, zkasio::acl entries) {
    std::exception_ptr failed;
    try {
        co_await make_directory(self->on_, self->directory_, std::move(entries));
    } catch (...) {
        failed = std::current_exception();
    }
    self->making_parent_ = false;
    for (const contender_ptr& c : std::exchange(self->orphans_, {})) self->create_unless(c, copy_of(failed));
}

void lock_queue::entered(const contender_ptr& c, const created& node) {
    c->path = node.path;
    c->czxid = node.stat.czxid;
    try {
        c->at = order_.enter(node_name(c->path), c, c->asked_at);
    } catch (...) {  // a server that does not number as it should
        c->path.clear();
        fail(c, std::current_exception());
        on_.ensure_removed(node.path);
        return;
    }
    if (has_given_up(c->now())) {
        go_to(c, stage::left);
        order_.leave(c->at);
        remove(c, {});
    } else {
        go_to(c, stage::waiting);
    }
    // It owns the lock at once, and without a listing, if it stands right behind readers of ours: in the same directory as they.
    if (const contender_ptr reader = joined_by(c->asked.kind))
        if (!reader->hold || !reader->hold->held() || !reader->hold->nodes_watched()) order_.forget_before(c->asked_at);
    reconsider();
}

// ------------------------------------------------------------------------------------------------------ leaving

void lock_queue::leave(const contender_ptr& c) {
    const stage was = c->now();
    if (has_given_up(was)) return;
    if (c->hold) c->hold->end(true);
    if (was == stage::downgrading && !over_) {  // nobody follows before it is known what has become of its node
        go_to(c, stage::downgrading_abandoned);
        return;
    }
    go_to(c, after_giving_up(was));
    if (over_) return c->tell_gone();
    if (owns(was)) return release(c);
    decide(c, acquire_outcome::refused);
    if (was == stage::waiting) {
        order_.leave(c->at);
        remove(c, {});
        reconsider();
    } else if (c->creating && c->creating->request) {
        // Whoever learns what has become of its node removes it; there may not have to be one.
        c->creating->request->withdraw();
    }
}

void lock_queue::release(const contender_ptr& c) {
    order_.leave(c->at);
    std::vector<contender_ptr> successors;
    // Without its node it did not keep anybody else out, and has nothing to hand over.
    const bool deleted = c->node_deleted || (c->hold && c->hold->reason() == loss_reason::node_deleted);
    if (deleted) order_.forget();
    std::size_t bytes = 0;
    for (contender_ptr head = order_.head(); head && order_.next().what == queue_order::verdict::granted; head = order_.head()) {
        bytes += head->path.size();
        if (!successors.empty() && bytes > most_checked_bytes) {
            order_.forget();
            break;
        }
        order_.grant(head->at);
        go_to(head, stage::owner_unconfirmed);
        successors.push_back(std::move(head));
    }
    if (!successors.empty()) {
        if (!c->leaving) c->leaving = std::make_unique<contender::departure>();
        c->leaving->successors.assign(successors.begin(), successors.end());
    }
    remove(c, successors);
    for (const contender_ptr& s : successors) {
        start_lease(s);
        // A cut, with suspension_policy::lose: nobody has the lock. Whoever got it only now would lose its place along with it, and has
        // not relied on it yet, so it hears of it after the cut.
        if (s->hold->reason() != loss_reason::suspended) become_owner(s);
    }
    reconsider();
}

// @param checked they own the lock as soon as this is sent, and it is only carried out if their nodes are there.
void lock_queue::remove(const contender_ptr& c, const std::vector<contender_ptr>& checked) {
    std::vector<std::string> must_exist;
    must_exist.reserve(checked.size());
    for (const contender_ptr& s : checked) must_exist.push_back(s->path);
    try {
        const pending_removal removal = on_.ensure_removed(c->path, std::move(must_exist));
        removal.then([self = shared_from_this(), c, removal, checked] { self->removal_answered(c, removal, checked); });
    } catch (...) {  // out of memory: the node goes with the session
        c->removal_failed();
        c->tell_gone();
        end_inheritance(checked, nullptr);
    }
}

void lock_queue::removal_answered(const contender_ptr& c, const pending_removal& removal, const std::vector<contender_ptr>& checked) {
    bool again = false, found = true;
    std::exception_ptr no_session;
    try {
        removal.get();
        found = removal.found();
    } catch (const error& e) {
        if (!over_ && e.code() == zk_errc::no_node) {
            // A successor's node was deleted while it waited. The old node is still there and keeps everybody else out, until
            // the successor has been told.
            for (const contender_ptr& s : checked)
                if (s->path == e.path()) lose_node(s);
            again = true;
        } else if (e.code() == condition::session_ended) {
            no_session = std::make_exception_ptr(error(e.code(), "acquire", directory_));
        } else {
            c->removal_failed();
        }
    }
    if (again) return remove(c, still_relying_on(checked));
    const bool waited_for = order_.waits_for_departure();
    order_.departed(c->at);
    c->tell_gone();
    // Perhaps it had been gone for long, together with the whole directory, and the nodes of those who came after it, among them its
    // heirs, are in a new one.
    const bool in_doubt = !over_ && !found;
    if (in_doubt) {
        order_.doubt_owners();
        for (const contender_ptr& s : checked)
            if (s->now() == stage::owner_unconfirmed) lose_node(s);  // who was not told of the lock yet starts over instead
    }
    end_inheritance(checked, no_session);
    if (waited_for || in_doubt) reconsider();
}

// Of those who were handed the lock, the ones who have it by now and do not know of a loss.
std::vector<contender_ptr> lock_queue::still_relying_on(std::vector<contender_ptr> heirs) {
    std::vector<contender_ptr> owners;
    while (!heirs.empty()) {
        const contender_ptr c = std::move(heirs.back());
        heirs.pop_back();
        const bool relies = c->now() == stage::owner_unconfirmed || (c->hold && c->hold->reason() == loss_reason::none);
        if (owns(c->now()) && relies) owners.push_back(c);
        if (c->now() != stage::left || !c->leaving) continue;
        for (const auto& successor : c->leaving->successors)
            if (contender_ptr s = successor.lock()) heirs.push_back(std::move(s));
    }
    return owners;
}

// The removal that has made them owners is answered. @param failed the session is over.
void lock_queue::end_inheritance(const std::vector<contender_ptr>& heirs, const std::exception_ptr& failed) {
    for (const contender_ptr& c : heirs) {
        if (c->now() != stage::owner_unconfirmed) continue;
        if (!failed) {
            become_owner(c);
            continue;
        }
        go_to(c, stage::owner);
        decide(c, acquire_outcome::failed, copy_of(failed));
    }
}

void lock_queue::lose_node(const contender_ptr& owner) {
    owner->node_deleted = true;
    if (owner->hold) owner->hold->lose(loss_reason::node_deleted);
    if (owner->now() == stage::owner_unconfirmed) become_owner(owner);  // so that it starts over
}

// ------------------------------------------------------------------------------------------------------ deciding

void lock_queue::reconsider() {
    if (order_.owners_doubted()) look();
    while (const contender_ptr head = order_.head()) {
        const queue_order::step s = order_.next();
        if (s.what == queue_order::verdict::granted) {
            order_.grant(head->at);
            become_owner(head);
            continue;
        }
        if (s.what == queue_order::verdict::unknown) {
            look();
        } else {
            if (refuse_impatient()) continue;  // what is known has changed
            prepare(head, s.what == queue_order::verdict::local || s.last);
            if (s.what == queue_order::verdict::remote && !arriving(*s.blocker)) {
                // Before the predecessor's: so its removal is not told before that of our own node.
                if (s.last && !names_.has_shared() && head->hold) head->hold->watch_nodes();
                follow(*s.blocker);
            } else {
                stop_following();
            }
        }
        break;
    }
    if (!order_.head()) stop_following();
    tell_observers();
}

// Whether a node that is one of the others to order_ will soon be ours, or gone: nobody follows it until then. For what its own watch
// would tell of ours must not get lost when it becomes ours.
bool lock_queue::arriving(const std::string& name) const {
    return arriving_.contains(name.substr(0, name.size() - names_.digits(name).size()));
}

// The head has to wait, and with it all behind it. Whether there were any.
bool lock_queue::refuse_impatient() {
    const auto refused = std::exchange(impatient_, {});
    for (const auto& [at, c] : refused) {
        order_.leave(at);
        remove(c, {});
        refuse(c);
    }
    return !refused.empty();
}

// The next in line has its lease ready, so that the grant costs no round trip, and learns when somebody deletes its node;
// far behind nobody needs that.
void lock_queue::prepare(const contender_ptr& head, bool next_in_line) {
    if (!next_in_line || (head->hold && head->hold->reason() == loss_reason::none)) return;
    head->hold.emplace(on_.hold(head->path));
    head->hold->on_lost([weak = weak_from_this(), weak_head = std::weak_ptr<contender>(head)](loss_reason why) {
        const auto self = weak.lock();
        const auto c = weak_head.lock();
        if (self && c && why == loss_reason::node_deleted && c->now() == stage::waiting) {
            self->vanished(c);
            self->reconsider();
        }
    });
}

void lock_queue::look() {
    if (order_.waits_for_departure() || std::exchange(looking_, true)) return;
    const std::uint64_t number = order_.begin_look();
    const pending_children listing = on_.start_children(directory_);
    listing.then([self = shared_from_this(), listing, number] { self->looked(listing, number); });
}

void lock_queue::looked(const pending_children& listing, std::uint64_t number) {
    looking_ = false;
    if (over_) return;
    queue_order::findings ours;
    bool failed = false;
    try {
        node_children found;
        try {
            found = listing.get();
        } catch (const error& e) {
            failed = e.code() != zk_errc::no_node;  // no directory: nobody is there, nor are we
            if (failed && e.code() != condition::retryable) throw;
        }
        if (!failed) ours = order_.listed(found.names, number);
    } catch (...) {
        if (order_.owners_doubted()) ours.overtaken = order_.condemn_owners();
        fail_waiting(std::current_exception());
    }
    if (failed)
        look_later();
    else
        before_looking_.reset();
    for (const contender_ptr& c : ours.missing) vanished(c);
    for (const contender_ptr& c : ours.overtaken) lose_node(c);
    reconsider();
}

// Until the pause has passed it counts as looking.
void lock_queue::look_later() {
    looking_ = true;
    before_looking_.then(on_.get_executor(), [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->over_) return;
        self->looking_ = false;
        self->reconsider();
    });
}

// Somebody has deleted the node.
void lock_queue::vanished(const contender_ptr& c) {
    if (owns(c->now())) return lose_node(c);
    if (c->now() != stage::waiting) return;
    order_.vanish(c->at);
    c->hold.reset();
    const std::string path = std::exchange(c->path, {});
    if (const auto lost = c->asked.lost) {
        lost->tell(path);
        return refuse(c, acquire_outcome::displaced);
    }
    begin_create(c);  // at the end of the queue
}

// --------------------------------------------------------------------------------------- watching the predecessor

void lock_queue::follow(const std::string& name) {
    if (following_ == name) return;
    stop_following();
    following_ = name;
    const std::uint64_t round = ++following_round_;
    // get: it leaves no watch on a node that is gone (CURATOR-107)
    following_request_ = std::make_shared<pending_watched_data>(on_.start_get_and_watch(join_path(directory_, name)));
    following_request_->then([weak = weak_from_this(), asked = std::weak_ptr<pending_watched_data>(following_request_), round] {
        const auto self = weak.lock();
        const auto request = asked.lock();
        if (self && request) self->arm(request, round);
    });
}

void lock_queue::stop_following() {
    following_.clear();
    ++following_round_;
    following_request_.reset();
    following_watch_.reset();
}

void lock_queue::arm(const std::shared_ptr<pending_watched_data>& asked, std::uint64_t round) {
    if (over_ || round != following_round_) return;
    const std::string name = following_;
    try {
        watched<node_data> seen = asked->get();
        following_request_.reset();
        following_watch_.emplace(std::move(seen.changes));
        before_following_.reset();
    } catch (const error& e) {
        if (e.code() == condition::retryable) return follow_later(round);
        stop_following();
        if (e.code() == zk_errc::no_node)
            predecessor_gone(name);
        else
            fail_waiting(std::current_exception());
        return;
    }
    following_watch_->then([weak = weak_from_this(), name, round](std::error_code over, node_change what) {
        const auto self = weak.lock();
        if (over || !self || self->over_ || round != self->following_round_) return;
        self->stop_following();
        if (what == node_change::removed)
            self->predecessor_gone(name);
        else
            self->reconsider();  // its data has changed: watch on
    });
}

// Until the pause has passed it counts as followed.
void lock_queue::follow_later(std::uint64_t round) {
    following_request_.reset();
    before_following_.then(on_.get_executor(), [weak = weak_from_this(), round] {
        const auto self = weak.lock();
        if (!self || self->over_ || round != self->following_round_) return;
        self->stop_following();
        self->reconsider();
    });
}

// When it was the only one ahead, that is the grant; else list again: walking down what was listed once is far slower.
void lock_queue::predecessor_gone(const std::string& name) {
    order_.removed(name);
    if (const contender_ptr head = order_.head()) {
        const auto what = order_.next().what;
        // What has happened to our own node before that, its watch has told.
        const bool proven =
            what == queue_order::verdict::granted && head->hold && head->hold->held() && head->hold->nodes_watched();
        // Readers and writers: a writer may have gone on as a reader, under another name (shared_mutex::downgrade()).
        if (names_.has_shared() || what == queue_order::verdict::remote || (what == queue_order::verdict::granted && !proven))
            order_.forget();
    }
    reconsider();
}

// ------------------------------------------------------------------------------------------------------- telling

void lock_queue::start_lease(const contender_ptr& c) {
    if (!c->node_deleted && (!c->hold || c->hold->reason() != loss_reason::none)) c->hold.emplace(on_.hold(c->path));
}

// From here on its coroutine knows that it has the lock.
void lock_queue::become_owner(const contender_ptr& c) {
    go_to(c, stage::owner);
    start_lease(c);
    if (const auto& lost = c->asked.lost) c->hold->on_lost([lost, path = c->path](loss_reason) { lost->tell(path); });
    decide(c, acquire_outcome::granted);
}

// It gets no place in the queue, or loses the one that it has.
void lock_queue::refuse(const contender_ptr& c, acquire_outcome how, std::exception_ptr why) {
    if (c->now() != stage::left) go_to(c, stage::left);
    decide(c, how, std::move(why));
}

void lock_queue::fail(const contender_ptr& c, std::exception_ptr why) { refuse(c, acquire_outcome::failed, std::move(why)); }

// Tells its coroutine; once.
void lock_queue::decide(const contender_ptr& c, acquire_outcome how, std::exception_ptr why) {
    if (c->outcome != acquire_outcome::undecided) return;
    if (c->asked.observed) c->asked.observed->end();
    c->outcome = how;
    c->failed = std::move(why);
    c->decided.fire();
}

void lock_queue::fail_waiting(const std::exception_ptr& why) {
    for (const contender_ptr& c : order_.waiting()) {
        order_.leave(c->at);
        remove(c, {});
        fail(c, copy_of(why));
    }
}

void lock_queue::session_over(std::error_code why) noexcept {
    over_ = why;
    stop_following();
    for (const contender_ptr& c : order_.clear()) fail(c, ended("acquire", directory_));
    for (auto* those : {&orphans_, &refused_})
        for (const contender_ptr& c : std::exchange(*those, {})) fail(c, ended("acquire", directory_));
    for (const lost_create& l : std::exchange(lost_, {})) fail(l.who, ended("acquire", directory_));
}

// Contenders keep their queue alive, and it keeps them.
void lock_queue::loop_over() noexcept {
    order_.clear();
    orphans_.clear();
    refused_.clear();
    lost_.clear();
    observed_.clear();
    impatient_.clear();
}

// Only those for whom something may have changed.
void lock_queue::tell_observers() {
    const auto from = order_.changed_from();
    if (!from || observed_.empty()) return;
    std::vector<contender_ptr> those;
    std::vector<queue_key> places;
    for (auto it = observed_.lower_bound(queue_key{*from, lock_kind::exclusive, 0}); it != observed_.end(); ++it) {
        if (!order_.knows(it->first)) {
            if (those.empty()) return look();
            break;
        }
        those.push_back(it->second);
        places.push_back(it->first);
    }
    const auto insights = order_.look_at(places);
    order_.told();
    if (!places.empty() && places.back() != observed_.rbegin()->first) {
        order_.changed(places.back().number + 1);  // those behind are not known yet
        look();
    }
    for (std::size_t i = 0; i < those.size(); ++i) {
        if (those[i]->now() != stage::waiting) continue;
        queue_position position;
        position.ahead = insights[i].position;
        if (!insights[i].predecessor.empty()) position.predecessor = join_path(directory_, insights[i].predecessor);
        const auto observed = those[i]->asked.observed;
        if (observed->told == position) continue;
        observed->told = position;
        // The observer is a user's: it is called by itself, not in the middle of a change here.
        asio::post(on_.get_executor(), [self = shared_from_this(), observed, position = std::move(position)] {
            self->tell(observed, position);
        });
    }
}

void lock_queue::tell(const std::shared_ptr<observation>& observed, const queue_position& position) noexcept {
    try {
        const std::lock_guard lock(observed->telling);
        if (observed->over) return;
        observed->tell(position);
    } catch (...) {
        on_.run_in_background(observer_failed(directory_, std::current_exception()));  // which logs it
    }
}

}  // namespace zkasio::lock_detail
