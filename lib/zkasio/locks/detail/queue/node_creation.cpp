#include <zkasio/locks/detail/queue/node_creation.hpp>

#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

create_answer answer_of_create(const error& e) noexcept {
    if (e.outcome_unknown() && e.code() == condition::retryable) return create_answer::lost;
    if (e.code() == zk_errc::no_node) return create_answer::no_directory;
    if (e.code() == condition::retryable) return create_answer::refused_for_now;
    return create_answer::failed;
}

removal_answer answer_of_removal(const error& e, bool over) noexcept {
    if (!over && e.code() == zk_errc::no_node) return removal_answer::successor_missing;
    if (e.code() == condition::session_ended) return removal_answer::session_over;
    return removal_answer::failed;
}

std::string lost_creates::prefix_of(const lost& l) const { return queue_.names().prefix(l.id, l.who->asked.kind); }

void lost_creates::add(const contender_ptr& c, std::string id, std::exception_ptr hung_up) {
    if (!has_given_up(c->now())) queue_.go_to(c, stage::creation_lost);
    lost l{c, std::move(id), std::move(hung_up)};
    queue_.expect_node(prefix_of(l));  // G17: no contender follows the node that is searched for
    waiting_.push_back(std::move(l));
    if (!std::exchange(searching_, true)) queue_.tools().run_in_background(search(queue_.shared_from_this()));
}

asio::awaitable<void> lost_creates::search(std::shared_ptr<lock_queue> keeps_this_alive) {
    back_off pauses = keeps_this_alive->tools().make_back_off();
    while (!waiting_.empty()) {
        // Creates that are lost in one turn of the strand share one search.
        co_await asio::post(keeps_this_alive->on().get_executor(), asio::use_awaitable);
        const bool complete = co_await search_once();
        if (complete)
            pauses.reset();
        else
            co_await pauses.pause();
    }
    searching_ = false;
}

// False: some creates have to be searched for again.
asio::awaitable<bool> lost_creates::search_once() {
    const std::vector<lost> round = std::exchange(waiting_, {});
    std::vector<std::string> ids;
    for (const lost& l : round) ids.push_back(l.id);
    std::multimap<std::string, std::string> names;
    std::exception_ptr failed;
    try {
        names = co_await queue_.tools().find_all_protected(queue_.directory(), std::move(ids));
    } catch (...) {
        failed = std::current_exception();
    }
    const std::vector<look> looks = look_at_found(round, names, failed);
    bool complete = true;
    for (const auto& [l, reading] : looks) {
        std::exception_ptr unreadable;
        created node;
        node.path = l.who->path;
        bool deleted = false, again = false;
        try {
            const node_data seen = co_await reading.result();
            node.stat = seen.stat;
        } catch (const error& e) {
            deleted = e.code() == zk_errc::no_node;
            again = e.code() == condition::retryable;
            if (!deleted && !again) unreadable = std::current_exception();
        } catch (...) {
            unreadable = std::current_exception();
        }
        complete = complete && !again;
        if (again)
            waiting_.push_back(l);
        else if (deleted || unreadable)
            not_found(l, unreadable);
        else
            found(l, node);
    }
    co_return complete;
}

// No other create uses the id, so a node with this id is ours. Only reading the node tells the token; a contender that
// has given up needs no token.
std::vector<lost_creates::look> lost_creates::look_at_found(const std::vector<lost>& round,
                                                            const std::multimap<std::string, std::string>& names,
                                                            const std::exception_ptr& failed) {
    std::vector<look> looks;
    for (const lost& l : round) {
        const auto it = names.find(l.id);
        if (failed || it == names.end()) {
            not_found(l, failed);
            continue;
        }
        created node;
        node.path = l.who->path = join_path(queue_.directory(), it->second);
        if (has_given_up(l.who->now())) {
            found(l, node);
            continue;
        }
        if (l.who->now() != stage::creation_found) queue_.go_to(l.who, stage::creation_found);
        looks.emplace_back(l, queue_.tools().start_exists(node.path));
    }
    return looks;
}

void lost_creates::found(const lost& l, const created& node) {
    if (queue_.over()) return not_found(l, nullptr);
    queue_.stop_expecting_node(prefix_of(l));
    l.who->asked_at = queue_.order().hear_of_create();
    queue_.node_created(l.who, node);
}

// There is no node; or, with `failed`, the existence of the node could not be determined.
void lost_creates::not_found(const lost& l, const std::exception_ptr& failed) {
    const contender_ptr& c = l.who;
    queue_.stop_expecting_node(prefix_of(l));
    if (failed && !queue_.over() && !c->path.empty()) queue_.tools().ensure_removed(c->path);  // G37: of a found node
    const bool was_made = !c->path.empty();  // and is gone
    c->path.clear();
    if (queue_.over())
        queue_.creation().after_detour(c, queue_.ended("acquire", queue_.directory()));
    else if (failed || was_made)
        queue_.creation().after_detour(c, fresh_copy_of(failed));
    else
        queue_.creation().after_loss(c, l.hung_up);
    queue_.reconsider();  // G17: a contender that has seen the node in a listing, and not followed it, looks again
}

std::vector<contender_ptr> lost_creates::take_waiting() {
    std::vector<contender_ptr> all;
    for (lost& l : std::exchange(waiting_, {})) all.push_back(std::move(l.who));
    return all;
}

namespace {

transaction steps_of(const lock_spec& as, const std::string& path, const std::string& writer) {
    create_options options = as.node;
    options.mode(create_mode::ephemeral);
    transaction steps;
    steps.create(path, bytes(as.data), options);
    steps.remove(writer);
    return steps;
}

// Looks for the node, after all requests that were sent before.
asio::awaitable<std::optional<node_stat>> find(session on, std::string directory, std::string path, bool sync_first) {
    auto look = [&]() -> asio::awaitable<std::optional<node_stat>> {
        if (sync_first) co_await on.sync(directory);  // a server that lags behind does not show the node yet
        co_return co_await on.exists(path);
    };
    co_return co_await retry_until_certain(toolbox(on).make_back_off(), look);
}

}  // namespace

asio::awaitable<std::optional<created>> replace_by_reader_node(session on, lock_spec_ptr as, std::string path,
                                                               std::string writer) {
    const transaction steps = steps_of(*as, path, writer);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        std::error_code failed;
        std::optional<error> hung_up;
        try {
            co_await on.multi(steps);
        } catch (const error& e) {
            if (e.code() == zk_errc::no_node) co_return std::nullopt;
            // node_exists: an earlier attempt, whose answer was lost, was carried out.
            if (e.code() != zk_errc::node_exists && e.code() != condition::retryable) throw;
            failed = e.code();
            if (e.hung_up()) hung_up.emplace(e);
        }
        const std::optional<node_stat> there = co_await find(on, as->directory, path, bool(failed));
        if (there) {
            if (failed) toolbox(on).was_applied(writer);
            std::optional<created> node(std::in_place);
            node->path = path;
            node->stat = *there;
            co_return node;
        }
        if (!failed) co_return std::nullopt;
        if (hung_up) throw hung_up->not_applied();
        co_await pauses.pause();
    }
}

node_creation::node_creation(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()), lost_(queue) {}

void node_creation::begin(const contender_ptr& c) {
    constexpr std::size_t most_unanswered = 8;
    queue_.go_to(c, stage::creating);
    if (may_be_missing_ && unanswered_ >= most_unanswered) {  // without a directory, all would be refused
        queue_.go_to(c, stage::throttled);
        return throttled_.push_back(c);
    }
    if (without_room_.empty()) {
        switch (queue_.tools().room_for_contender(queue_.directory(), path_bytes(*c))) {
            case contender_room::now:
            case contender_room::never: return create(c);  // which the client refuses if there is no room
            case contender_room::later: break;
        }
    }
    after_room(c);
}

// ------------------------------------------------------------------------------------ room for ephemeral nodes

std::size_t node_creation::path_bytes(const contender& c) const {
    return queue_.directory().size() + 1 + queue_.names().prefix_size(c.asked.kind);
}

// The create leaves when the contenders in front of it have left: client_options::ephemeral_budget(). Until then the
// contender has no request under way, so that rules about the order of creates and listings stay as they are.
void node_creation::after_room(const contender_ptr& c) {
    if (c->asked.when_contended == if_contended::give_up) return queue_.refuse(c);
    queue_.go_to(c, stage::throttled);
    if (without_room_.size() > 2 * swept_ + 64) {
        std::erase_if(without_room_, [](const contender_ptr& other) { return has_given_up(other->now()); });
        swept_ = without_room_.size();
    }
    // Who comes back from a detour, say because there was no directory, has asked before those that wait.
    const auto end_of_returned =
        c->asked_at == 0 ? without_room_.end()
                         : std::partition_point(without_room_.begin(), without_room_.end(),
                                                [](const contender_ptr& other) { return other->asked_at != 0; });
    without_room_.insert(end_of_returned, c);
    if (!waits_for_room_ && !making_directory_) wait_for_room();
}

void node_creation::wait_for_room() {
    waits_for_room_ = true;
    queue_.tools().when_room_changes(queue_.directory(), path_bytes(*without_room_.front()),
                                     [this, weak = queue_.weak_from_this()] {
                                         if (const auto alive = weak.lock()) room_changed();
                                     });
}

// One contender at a time, so that the locks of a session share the room.
void node_creation::room_changed() {
    waits_for_room_ = false;
    if (making_directory_) return;  // the room is of those that wait for the directory
    while (!without_room_.empty() && has_given_up(without_room_.front()->now())) without_room_.pop_front();
    if (without_room_.empty()) return;
    const contender_ptr c = without_room_.front();
    const contender_room room = queue_.tools().room_for_contender(queue_.directory(), path_bytes(*c));
    if (room == contender_room::never) {
        for (const contender_ptr& none : std::exchange(without_room_, {})) {
            if (has_given_up(none->now())) continue;
            queue_.go_to(none, stage::creating);
            create(none);
        }
        return;
    }
    if (room == contender_room::now) {
        without_room_.pop_front();
        queue_.go_to(c, stage::creating);
        create(c);
    }
    if (!without_room_.empty()) wait_for_room();
}

// ------------------------------------------------------------------------------------------------------- creates

void node_creation::create(const contender_ptr& c) {
    // G32: the newcomer may be let in right behind `reader`, an owner. If the reader's node is deleted, with the
    // directory, the watch tells before the create is answered.
    const contender_ptr reader = queue_.reader_joined_by(c->asked.kind);
    if (reader) reader->hold.watch_nodes();
    // If no other contender of this session is in the queue or entering, only a listing can tell the newcomer's place.
    // The listing then leaves together with the create.
    const bool alone = queue_.only_one_entering();
    try {
        c->creating = std::make_unique<contender::creation>();
        c->asked_at = queue_.order().begin_create();
        c->creating->id = queue_.names().new_id();  // never used twice: a search for the old id may be under way
        std::string path = join_path(queue_.directory(), queue_.names().prefix(c->creating->id, c->asked.kind));
        const lock_spec& spec = *c->asked.spec;
        c->creating->request.emplace(queue_.tools().start_create(std::move(path), bytes(spec.data), spec.node,
                                                                    node_use::waits));
    } catch (...) {
        c->creating.reset();
        return queue_.fail(c, std::current_exception());
    }
    ++unanswered_;
    c->creating->request->then([this, alive = queue_.shared_from_this(), c] { answered(c); });
    if (alone) queue_.ask_for_listing();
}

void node_creation::after_detour(const contender_ptr& c, std::exception_ptr failed) {
    if (failed) return queue_.fail(c, std::move(failed));
    if (has_given_up(c->now())) return queue_.refuse(c);  // G39: the create is not sent again
    queue_.create_node(c);
}

void node_creation::after_loss(const contender_ptr& c, const std::exception_ptr& hung_up) {
    if (has_given_up(c->now())) return after_detour(c);
    if (hung_up) return queue_.fail(c, hung_up);
    if (!std::exchange(c->create_was_lost, true)) return after_detour(c);
    after_pause(c);
}

void node_creation::answered(const contender_ptr& c) {
    created node;
    std::exception_ptr failed, hung_up;
    create_answer answer = create_answer::created;
    try {
        node = c->creating->request->get();
    } catch (const error& e) {
        failed = std::current_exception();
        answer = answer_of_create(e);
        if (e.hung_up())
            hung_up = std::make_exception_ptr(e.renamed("create a node below", queue_.directory()).not_applied());
    }
    --unanswered_;
    std::string id = std::move(std::exchange(c->creating, nullptr)->id);
    if (queue_.over()) return queue_.fail(c, queue_.ended("acquire", queue_.directory()));
    const bool might_be_missing = std::exchange(may_be_missing_, answer == create_answer::no_directory);
    std::vector<contender_ptr> waited;  // for this answer
    if (might_be_missing && !may_be_missing_) waited.swap(throttled_);
    if (answer == create_answer::created) {
        pauses_.reset();
        c->create_was_lost = false;
        queue_.node_created(c, node);
    } else if (answer == create_answer::lost) {
        lost_.add(c, std::move(id), std::move(hung_up));
    } else if (answer == create_answer::failed || has_given_up(c->now())) {
        after_detour(c, failed);
    } else if (answer == create_answer::refused_for_now) {
        after_pause(c);
    } else {
        after_making_directory(c);
    }
    // All contenders that would make the directory have given up.
    if (may_be_missing_ && unanswered_ == 0 && !making_directory_) waited.swap(throttled_);
    for (const contender_ptr& other : waited) after_detour(other);
}

void node_creation::after_pause(const contender_ptr& c) {
    queue_.go_to(c, stage::throttled);
    throttled_.push_back(c);
    pause();
}

void node_creation::pause() {
    if (std::exchange(pausing_, true)) return;
    pauses_.then(queue_.on().get_executor(), [this, weak = queue_.weak_from_this()] {
        const auto alive = weak.lock();
        if (!alive) return;
        pausing_ = false;
        for (const contender_ptr& waiting : std::exchange(throttled_, {})) after_detour(waiting);
    });
}

void node_creation::after_making_directory(const contender_ptr& c) {
    queue_.go_to(c, stage::waiting_for_directory);
    queue_.order().discard_listings();  // G5: without a directory there is no queue
    without_directory_.push_back(c);
    if (!std::exchange(making_directory_, true))
        queue_.tools().run_in_background(make_directory_for_all(queue_.shared_from_this(), c->asked.spec));
}

asio::awaitable<void> node_creation::make_directory_for_all(std::shared_ptr<lock_queue> keeps_this_alive,
                                                            lock_spec_ptr spec) {
    std::exception_ptr failed;
    try {
        co_await make_directory(keeps_this_alive->on(), std::move(spec));
    } catch (...) {
        failed = std::current_exception();
    }
    for (auto* const waiting : {&without_directory_, &throttled_})
        for (const contender_ptr& c : std::exchange(*waiting, {})) after_detour(c, fresh_copy_of(failed));
    making_directory_ = false;
    if (!waits_for_room_) room_changed();
}

std::vector<contender_ptr> node_creation::take_waiting() {
    std::vector<contender_ptr> all = std::exchange(without_directory_, {});
    all.insert(all.end(), without_room_.begin(), without_room_.end());
    without_room_.clear();
    std::erase_if(all, [](const contender_ptr& c) { return has_given_up(c->now()); });
    for (auto& others : {std::exchange(throttled_, {}), lost_.take_waiting()})
        all.insert(all.end(), others.begin(), others.end());
    return all;
}

}  // namespace zkasio::lock_detail
