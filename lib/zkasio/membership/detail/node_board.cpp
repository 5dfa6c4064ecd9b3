#include <zkasio/membership/detail/node_board.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/this_coro.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>

namespace zkasio::membership_detail {

using namespace std::chrono_literals;
using request_ptr = std::shared_ptr<data_request>;

node_board::node_board(const operations& events, std::string path, std::string data, std::size_t largest)
    : events_(events),
      path_(std::move(path)),
      largest_(largest),
      data_(std::move(data)),
      wish_(toolbox(events_).make_one_shot_event()),
      change_(events_, mutex_) {}

// ------------------------------------------------------------------------------------------------------ wishes

bool node_board::leaving() const {
    const std::lock_guard lock(mutex_);
    return leaving_;
}

one_shot_event node_board::next_wish() {
    one_shot_event next = toolbox(events_).make_one_shot_event();
    const std::lock_guard lock(mutex_);
    wish_ = next;
    return next;
}

std::string node_board::known_path() const {
    const std::lock_guard lock(mutex_);
    return state_.load() == persistent_node_state::standing ? node_path_ : std::string();
}

std::string node_board::written_data() const {
    const std::lock_guard lock(mutex_);
    return data_;
}

void node_board::ask_to_leave() {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    const one_shot_event wish = wish_;
    change_.notify_all(std::move(lock));
    wish.fire();
}

node_board::wished_data node_board::data() const {
    const std::lock_guard lock(mutex_);
    if (new_data_) return {*new_data_, last_number_};
    return {data_, 0};
}

bool node_board::has_new_data() const {
    const std::lock_guard lock(mutex_);
    return new_data_.has_value();
}

// Under the mutex. The requests are in the order of their numbers.
std::vector<request_ptr> node_board::take_requests(std::uint64_t up_to) {
    const auto newer = [up_to](const request_ptr& r) { return r->number > up_to; };
    const auto end = std::find_if(requests_.begin(), requests_.end(), newer);
    assert(up_to <= last_number_);
    std::vector<request_ptr> taken(requests_.begin(), end);
    requests_.erase(requests_.begin(), end);
    if (up_to == last_number_) new_data_.reset();
    assert((requests_.empty() || new_data_) && "a request that waits has data to be written");
    return taken;
}

void node_board::wrote(wished_data what) {
    std::unique_lock lock(mutex_);
    data_ = std::move(what.data);
    if (what.number == 0) return;
    const std::vector<request_ptr> answered = take_requests(what.number);
    lock.unlock();
    for (const request_ptr& r : answered) r->answered.fire();
}

void node_board::refused(const wished_data& what, const std::exception_ptr& why) {
    std::unique_lock lock(mutex_);
    const std::vector<request_ptr> failed = take_requests(what.number);
    lock.unlock();
    for (const request_ptr& r : failed) {
        r->failed = why;
        r->answered.fire();
    }
}

// ------------------------------------------------------------------------------------------------------ news

void node_board::cannot_create(std::exception_ptr why) {
    std::unique_lock lock(mutex_);
    cannot_create_ = std::move(why);
    change_.notify_all(std::move(lock));
}

void node_board::attempt_failed(const std::exception_ptr& why) {
    std::string said;
    try {
        std::rethrow_exception(why);
    } catch (const std::exception& e) {
        said = e.what();
    } catch (...) {
    }
    const std::lock_guard lock(mutex_);
    last_failure_ = std::move(said);
}

void node_board::tell(persistent_node_state state, std::string node_path) {
    std::unique_lock lock(mutex_);
    assert(state_.load() != persistent_node_state::ended && "no other state follows");
    assert((state == persistent_node_state::standing) == !node_path.empty());
    if (state == persistent_node_state::standing) cannot_create_ = nullptr;
    if (state != persistent_node_state::creating) last_failure_.clear();
    if (state == state_.load() && node_path == node_path_) return;
    state_.store(state);
    node_path_ = std::move(node_path);
    change_.notify_all(std::move(lock));
}

void node_board::end(const std::exception_ptr& why) {
    std::unique_lock lock(mutex_);
    failed_ = why;
    failed_to_leave_ = why && leaving_;
    state_.store(persistent_node_state::ended);
    const std::vector<request_ptr> unanswered = take_requests(last_number_);
    change_.notify_all(std::move(lock));
    for (const request_ptr& r : unanswered) {
        r->failed = why ? why : std::make_exception_ptr(error(errc::client_closed, "set_data", path_, "it has left"));
        r->answered.fire();
    }
}

// Under the mutex.
void node_board::check_alive(std::string_view operation) const {
    if (failed_) rethrow_end_of_loop(failed_, operation, path_);
    if (leaving_) throw error(errc::client_closed, "persistent_node", path_, "it has left");
}

// ------------------------------------------------------------------------------------------------------ waits

// Nothing: the node does not stand yet.
std::optional<std::string> node_board::standing_path() const {
    const std::lock_guard lock(mutex_);
    check_alive("created");
    if (state_.load() != persistent_node_state::standing) {
        if (cannot_create_) rethrow_to_caller(cannot_create_, "created", path_);
        return std::nullopt;
    }
    return node_path_;
}

// Nothing: the state is still `known`. Waiting for a state after persistent_node_state::ended is an error.
std::optional<persistent_node_state> node_board::state_unless(persistent_node_state known) const {
    const std::lock_guard lock(mutex_);
    const persistent_node_state now = state_.load();
    if (now != known) return now;
    if (now == persistent_node_state::ended) check_alive("state_after");
    return std::nullopt;
}

// Nothing: an attempt is under way, the first one.
std::string node_board::why_not_standing() const {
    const std::lock_guard lock(mutex_);
    if (state_.load() == persistent_node_state::taken) return "the node " + path_ + " is another client's";
    return last_failure_.empty() ? last_failure_ : "the last attempt has failed: " + last_failure_;
}

asio::awaitable<std::string> node_board::why_not_created(std::shared_ptr<node_board> self) {
    std::string why = self->why_not_standing();
    try {
        if (why.empty()) co_await timeout(0s, toolbox(self->events_).connected("created", self->path_));
    } catch (const error& e) {
        why = e.hint();
    } catch (const std::system_error&) {  // a second cancellation
    }
    co_return why;
}

asio::awaitable<std::string> node_board::until_created(std::shared_ptr<node_board> self) {
    const auto standing = [self] { return self->standing_path(); };
    std::optional<std::string> path;
    std::optional<error> cancelled;
    try {
        path = co_await self->change_.until(standing, "created", self->path_);
    } catch (const error& e) {
        if (e.code() != condition::cancelled) throw;
        cancelled.emplace(e);
    }
    if (cancelled) {
        const bool throws = co_await asio::this_coro::throw_if_cancelled();
        co_await asio::this_coro::throw_if_cancelled(false);
        const std::string why = co_await why_not_created(self);
        co_await asio::this_coro::throw_if_cancelled(throws);
        throw error(cancelled->code(), cancelled->operation(), self->path_, why);
    }
    co_await yield_turn();
    co_return std::move(*path);
}

std::shared_ptr<data_request> node_board::ask_for_data(std::string data) {
    if (data.size() > largest_)
        throw error(errc::too_large, "set_data", path_,
                    std::to_string(data.size()) + " bytes, and there is room for " + std::to_string(largest_));
    const auto request = std::make_shared<data_request>(toolbox(events_).make_one_shot_event());
    std::unique_lock lock(mutex_);
    check_alive("set_data");
    requests_.push_back(request);
    new_data_ = std::move(data);
    request->number = ++last_number_;
    const one_shot_event wish = wish_;
    lock.unlock();
    wish.fire();
    return request;
}

void node_board::forget_request(const std::shared_ptr<data_request>& request) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(requests_, request);
}

asio::awaitable<void> node_board::until_written(std::shared_ptr<node_board> self, std::string data) {
    const request_ptr request = self->ask_for_data(std::move(data));
    std::exception_ptr failed;
    try {
        co_await errors_as("set_data", self->path_, request->answered.wait());
        failed = request->failed;
    } catch (...) {
        failed = std::current_exception();
        self->forget_request(request);
    }
    if (failed) rethrow_end_of_loop(failed, "set_data", self->path_, leaves_outcome_unknown(failed));
}

asio::awaitable<persistent_node_state> node_board::until_other_state(std::shared_ptr<node_board> self,
                                                                     persistent_node_state known) {
    const auto other = [self, known] { return self->state_unless(known); };
    const std::optional<persistent_node_state> now = co_await self->change_.until(other, "state_after", self->path_);
    co_await yield_turn();
    co_return *now;
}

asio::awaitable<void> node_board::until_ended(std::shared_ptr<node_board> self, std::string_view operation) {
    const auto ended = [self] { return self->state() == persistent_node_state::ended; };
    co_await self->change_.until(ended, std::string(operation), self->path_);
    const std::lock_guard lock(self->mutex_);
    if (self->failed_) rethrow_end_of_loop(self->failed_, operation, self->path_);
}

asio::awaitable<void> node_board::until_left(std::shared_ptr<node_board> self) {
    try {
        co_await until_ended(self, "leave");
    } catch (const std::exception&) {
        // If the node had ended before it was to leave, nothing is left to be removed.
        if (self->state() != persistent_node_state::ended) throw;
        const std::lock_guard lock(self->mutex_);
        if (self->failed_to_leave_) throw;
    }
}

}  // namespace zkasio::membership_detail
