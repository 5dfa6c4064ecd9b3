#include <zkasio/locks/detail/queue/node_creation.hpp>

#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/locks/detail/queue/server_answers.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

node_creation::node_creation(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()), lost_(queue) {}

void node_creation::begin(const contender_ptr& c) {
    queue_.go_to(c, stage::creating);
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
    std::string id = std::move(std::exchange(c->creating, nullptr)->id);
    if (queue_.over()) return queue_.fail(c, queue_.ended("acquire", queue_.directory()));
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
    queue_.order().discard_listings();  // G6: without a directory there is no queue
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
    for (const contender_ptr& c : std::exchange(without_directory_, {})) after_detour(c, fresh_copy_of(failed));
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
