#include <zkasio/locks/detail/queue/node_creation.hpp>

#include <zkasio/locks/detail/directory.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/locks/detail/queue/server_answers.hpp>
#include <zkasio/lost_each_time.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/fresh_copy_of.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace zkasio::lock_detail {

node_creation::node_creation(lock_queue& queue) : queue_(queue), pauses_(queue.tools().make_back_off()), lost_(queue) {}

void node_creation::begin(const contender_ptr& c) {
    // G32: the newcomer may be let in right behind `reader`, an owner. If the reader's node is deleted, with the
    // directory, the watch tells before the create is answered.
    const contender_ptr reader = queue_.reader_joined_by(c->asked.kind);
    if (reader) reader->hold.watch_nodes();
    queue_.go_to(c, stage::creating);
    // If no other contender of this session is in the queue or entering, only a listing can tell the newcomer's place.
    // The listing then leaves together with the create.
    const bool alone = queue_.only_one_entering();
    try {
        c->creating = std::make_unique<contender::creation>();
        c->asked_at = queue_.order().begin_create();
        c->creating->id = queue_.names().new_id();  // never used twice: a search for the old id may be under way
        std::string path = join_path(queue_.directory(), queue_.names().prefix(c->creating->id, c->asked.kind));
        const lock_spec& spec = *c->asked.spec;
        c->creating->request.emplace(queue_.tools().start_create(std::move(path), bytes(spec.data), spec.node));
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

void node_creation::after_loss(const contender_ptr& c) {
    if (has_given_up(c->now()) || ++c->creates_lost == 1) return after_detour(c);
    // Where no time passes, as in a simulation, many cuts in a row say nothing of the create.
    const bool pauses_were_made = boot_clock::now() - c->since >= std::chrono::milliseconds(100);
    if (c->creates_lost < most_lost_writes || !pauses_were_made) {
        c->creates_lost = std::min<std::uint8_t>(c->creates_lost, most_lost_writes);
        return after_pause(c);
    }
    const std::string& path = queue_.directory();
    const std::size_t name = queue_.names().prefix(queue_.names().new_id(), c->asked.kind).size() + 1;
    const std::size_t bytes = path.size() + name + c->asked.spec->data.size();
    queue_.fail(c, std::make_exception_ptr(lost_each_time("create a node below", path, bytes)));
}

void node_creation::answered(const contender_ptr& c) {
    created node;
    std::exception_ptr failed;
    create_answer answer = create_answer::created;
    try {
        node = c->creating->request->get();
    } catch (const error& e) {
        failed = std::current_exception();
        answer = answer_of_create(e);
    }
    std::string id = std::move(std::exchange(c->creating, nullptr)->id);
    if (queue_.over()) return queue_.fail(c, queue_.ended("acquire", queue_.directory()));
    if (answer == create_answer::created) {
        pauses_.reset();
        c->creates_lost = 0;
        return queue_.node_created(c, node);
    }
    if (answer == create_answer::lost) return lost_.add(c, std::move(id));
    if (answer == create_answer::failed || has_given_up(c->now())) return after_detour(c, failed);
    if (answer == create_answer::refused_for_now) return after_pause(c);
    after_making_directory(c);
}

void node_creation::after_pause(const contender_ptr& c) {
    queue_.go_to(c, stage::throttled);
    throttled_.push_back(c);
    if (throttled_.size() > 1) return;  // the pause has begun already
    pauses_.then(queue_.on().get_executor(), [this, weak = queue_.weak_from_this()] {
        const auto alive = weak.lock();
        if (!alive) return;
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
    making_directory_ = false;
    for (const contender_ptr& c : std::exchange(without_directory_, {})) after_detour(c, fresh_copy_of(failed));
}

std::vector<contender_ptr> node_creation::take_waiting() {
    std::vector<contender_ptr> all = std::exchange(without_directory_, {});
    for (auto& others : {std::exchange(throttled_, {}), lost_.take_waiting()})
        all.insert(all.end(), others.begin(), others.end());
    return all;
}

}  // namespace zkasio::lock_detail
