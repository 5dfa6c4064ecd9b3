#include <zkasio/locks/detail/queue_claim.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <utility>

namespace zkasio::lock_detail {

// There may be very many contenders, so the steps of each call execute(): asio::dispatch() does the same, and allocates
// memory for a copy of the strand.

queue_claim::queue_claim(session on, acquire_request what)
    : on_(std::move(on)), who_(std::make_shared<contender>(on_, std::move(what))) {}

queue_claim::queue_claim(session on, acquire_request what, asio::any_io_executor from)
    : queue_claim(std::move(on), std::move(what)) {
    on_.get_executor().execute([on = on_, who = who_, from = std::move(from)] {
        who->where = lock_queue::of(on, who->asked.spec);
        who->where->enter(who, from);
    });
}

namespace {

// The create of a node, a listing: the caller has asked for the lock.
[[noreturn]] void throw_failure(const contender_ptr& who) {
    try {
        std::rethrow_exception(who->failed);
    } catch (const std::system_error&) {
        rethrow_as("acquire", who->asked.spec->directory);
    }
}

}  // namespace

bool queue_claim::granted() {
    if (who_->failed) throw_failure(who_);
    const bool granted = who_->outcome == acquire_outcome::granted;
    if (granted) paths_.assign(1, who_->path);
    return granted;
}

std::optional<std::int32_t> queue_claim::sequence() const noexcept {
    const queue_names& names = who_->asked.spec->names;
    const std::string_view name = node_name(paths_.front());
    const auto number = sequence_of(name, names.exclusive());
    return number || !names.has_shared() ? number : sequence_of(name, names.shared());
}

void queue_claim::asked_back() noexcept {
    if (const auto user = who_->asked.user.lock()) user->asked_back();
}

void queue_claim::give_up() noexcept {
    if (std::exchange(who_->given_up, true)) return;
    if (who_->asked.observed) who_->asked.observed->end();
    std::optional<one_shot_event> gone;
    if (!paths_.empty()) {
        who_->hold.end(true);  // held() is false from here on
        gone = toolbox(on_).make_one_shot_event();
        gone_ = std::make_unique<const one_shot_event>(*gone);
    }
    on_.get_executor().execute([who = who_, gone = std::move(gone)] {
        if (gone) who->depart().gone = gone;
        who->where->leave(who);
    });
}

asio::awaitable<void> queue_claim::gone() {
    const contender_ptr who = who_;
    if (!gone_) co_return;
    try {
        co_await gone_->wait();
    } catch (...) {
        rethrow_as("release", who->path);
    }
    if (who->leaving->failed) std::rethrow_exception(who->leaving->failed);
}

asio::awaitable<std::shared_ptr<queue_claim>> queue_claim::downgrade(lock_spec_ptr as) {
    acquire_request what(std::move(as), lock_kind::shared);
    const std::shared_ptr<queue_claim> shared(new queue_claim(on_, std::move(what)));
    asio::dispatch(on_.get_executor(), [from = who_, to = shared->who_] {
        to->where = from->where;
        to->where->downgrade(from, to);
    });
    try {
        co_await shared->decided();
    } catch (...) {
        rethrow_as("downgrade", paths_.front());
    }
    if (shared->who_->failed) std::rethrow_exception(shared->who_->failed);  // names the downgrade
    if (shared->granted()) who_->given_up = true;  // the shared claim's node has replaced the node of this claim
    co_return shared;
}

void queue_claim::body_begins(asio::any_io_executor executor) {
    who_->bodies.announce();
    asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] { who->bodies.begin(executor); });
}

void queue_claim::body_ends(asio::any_io_executor executor) noexcept {
    asio::dispatch(on_.get_executor(), [who = who_, executor = std::move(executor)] {
        who->bodies.end(executor);
        who->where->body_ended(who);
    });
}

}  // namespace zkasio::lock_detail
