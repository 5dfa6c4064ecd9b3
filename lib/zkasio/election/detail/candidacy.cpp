#include <zkasio/election/detail/candidacy.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cassert>
#include <optional>
#include <string_view>
#include <system_error>

namespace zkasio::election_detail {
namespace {

// Whether the loss of a session or a connection explains the exception: operations fail with zkasio::error, and waits
// are cancelled.
bool explained_by_loss(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const error&) {
        return true;
    } catch (const std::system_error& e) {
        return e.code() == condition::cancelled;
    } catch (...) {
        return false;
    }
}

// Whether a lost connection explains the exception: only a request has failed, and the leadership goes on. The code
// decides: any failure may have error::outcome_unknown(), of a write that it has interrupted, and may last. Only a
// limit of the body's own hides the code of the write.
bool explained_by_connection(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::system_error& e) {
        if (e.code() == condition::session_ended) return false;
        const auto* ours = dynamic_cast<const error*>(&e);
        return e.code() == condition::retryable || e.code() == condition::outcome_unknown ||
               (e.code() == errc::timed_out && ours && ours->outcome_unknown());
    } catch (...) {
        return false;
    }
}

}  // namespace

after_term decide(const term_end& end, const lead_options& how) {
    if (end.failure && end.lost() && explained_by_loss(end.failure)) return after_term::stand_again;
    if (end.failure)
        return explained_by_connection(end.failure) && !how.fails_with_connection() ? after_term::pause_and_stand_again
                                                                                    : after_term::fail;
    return end.lost() || how.requeues() ? after_term::stand_again : after_term::complete;
}

bool tells_of_loss(const std::exception_ptr& thrown, std::string_view path) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const error& e) {
        return e.code() == errc::lock_lost && e.path() == path;
    } catch (...) {
    }
    return false;
}

std::exception_ptr failure_in_loss(std::exception_ptr thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const error& e) {
        if (e.code() != errc::lock_lost) return thrown;
        try {
            std::rethrow_if_nested(e);
        } catch (...) {
            return std::current_exception();
        }
        return nullptr;
    } catch (...) {
        return thrown;
    }
}

namespace {

// The loop fails with errors of its campaigns and resignations.
[[noreturn]] void rethrow_end(const std::exception_ptr& why, std::string_view operation, std::string_view path) {
    try {
        rethrow_end_of_loop(why, operation, path);
    } catch (const error&) {
        rethrow_as(operation, path);
    }
}

}  // namespace

candidacy::candidacy(const operations& events, std::string path)
    : events_(events),
      path_(std::move(path)),
      close_(toolbox(events_).make_one_shot_event()),
      room_("candidate", path_),
      change_(events_, mutex_) {}

// ------------------------------------------------------------------------------------------------------ terms

candidacy::term_ptr candidacy::term() const noexcept {
    const std::lock_guard lock(mutex_);
    return term_;
}

// A term that begins after close() is told to nobody, and ends at once.
candidacy::term_ptr candidacy::begin_term(leadership elected) {
    const toolbox tools(events_);
    const auto term = std::make_shared<candidate_term>(std::move(elected), tools.make_one_shot_event(),
                                                       tools.make_one_shot_event());
    std::unique_lock lock(mutex_);
    if (closing_) {
        lock.unlock();
        term->stop.fire();
        return term;
    }
    assert(!term_ && status_.state == candidate_state::standing);
    term_ = term;
    status_ = {candidate_state::leading, term->leader.token(), loss_reason::none};
    change_.notify_all(std::move(lock));
    return term;
}

candidacy::term_ptr candidacy::take_term(std::unique_lock<std::mutex> lock, loss_reason why) {
    const term_ptr term = std::exchange(term_, nullptr);
    if (!term) return nullptr;
    status_.state = candidate_state::standing;
    status_.reason = why;
    change_.notify_all(std::move(lock));
    return term;
}

void candidacy::end_term(const term_ptr& term, loss_reason why) {
    std::unique_lock lock(mutex_);
    if (term_ == term) take_term(std::move(lock), why);
}

candidacy::term_ptr candidacy::step_down() {
    const term_ptr term = take_term(std::unique_lock(mutex_), loss_reason::released);
    if (term) term->stop.fire();
    return term;
}

void candidacy::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    step_down();
    close_.fire();
}

bool candidacy::closing() const {
    const std::lock_guard lock(mutex_);
    return closing_;
}

void candidacy::end(const std::exception_ptr& why) {
    std::unique_lock lock(mutex_);
    assert(!term_ && status_.state != candidate_state::ended);
    failed_ = why;
    failed_to_leave_ = why && closing_;
    status_.state = candidate_state::ended;
    change_.notify_all(std::move(lock));
}

// ------------------------------------------------------------------------------------------------------ the loop

namespace {

// The loop is cancelled with its session or its client, and maybe before the hold has ended.
loss_reason reason_of_end(const leadership& leader) noexcept {
    return leader.guard().claim()->on().over() ? loss_reason::session_expired : loss_reason::closed;
}

// When the loop leaves the term early: users may keep the term, but not the leadership.
void give_up(candidate_term* term) noexcept {
    try {
        (void)term->leader.resign();
    } catch (const std::exception&) {
    }
    term->gone.fire();
}

}  // namespace

asio::awaitable<void> candidacy::serve(std::shared_ptr<candidacy> self, leadership elected) {
    const term_ptr term = self->begin_term(std::move(elected));
    const std::unique_ptr<candidate_term, void (*)(candidate_term*)> at_the_end(term.get(), &give_up);
    std::exception_ptr failed;
    try {
        const auto lost = [&] { return term->leader.lost(); };
        co_await term->stop.run_until(lost);
    } catch (...) {
        failed = std::current_exception();
    }
    const loss_reason why = term->leader.reason();
    self->end_term(term, failed && why == loss_reason::none ? reason_of_end(term->leader) : why);
    if (failed) std::rethrow_exception(failed);
    if (why == loss_reason::none)
        co_await until_bodies_ended(self, "step_down");
    else if (!term->leader.guard().claim()->on().over())
        co_await until_bodies_ended_or_closed(self);  // no other candidate of this session is elected before
    try {
        co_await term->leader.resign();
    } catch (const error& e) {
        if (e.code() != condition::session_ended) term->not_resigned = std::current_exception();
        throw;
    }
}

asio::awaitable<void> candidacy::until_bodies_ended(std::shared_ptr<candidacy> self, std::string operation) {
    const auto ended = [self] { return self->bodies_have_ended(); };
    co_await self->change_.until(ended, std::move(operation), self->path_);
}

// For bodies under a lost term, maybe of an earlier session: their nodes are gone, so close() does not wait for them.
asio::awaitable<void> candidacy::until_bodies_ended_or_closed(std::shared_ptr<candidacy> self) {
    const auto ended = [self] { return until_bodies_ended(self, "candidate"); };
    co_await self->close_.run_until(ended);
}

asio::awaitable<void> candidacy::stand_until_closed(std::shared_ptr<candidacy> self, session on,
                                                    leader_election election) {
    while (!self->closing()) {
        // A term in which the body of an earlier one still runs would keep others from leading, and do no work.
        co_await until_bodies_ended_or_closed(self);
        const auto campaign = [&] { return election.campaign(); };
        std::optional<leadership> elected;
        bool no_room = false;
        try {
            elected = co_await self->close_.run_until(campaign);
        } catch (const error& e) {
            no_room = self->room_.is_waited_for(e);
            if (!no_room) throw;
        }
        if (no_room) {
            const auto pause = [&] { return self->room_.pauses(on).pause(); };
            co_await self->close_.run_until(pause);
            continue;
        }
        if (elected) co_await serve(self, std::move(*elected));
        self->room_.stands();
    }
}

asio::awaitable<void> candidacy::stand(std::shared_ptr<candidacy> self, session on, leader_election election) {
    self->running_ = true;
    const std::unique_ptr<bool, void (*)(bool*)> running(&self->running_, [](bool* r) { *r = false; });
    try {
        co_await stand_until_closed(self, std::move(on), std::move(election));
    } catch (const std::system_error& e) {
        self->room_.stands();
        // The node goes with the session: a candidate that was closed has nothing to do in the next one.
        const bool needs_session = e.code() == condition::retryable || e.code() == condition::session_ended ||
                                   e.code() == condition::cancelled;
        if (!self->closing() || !needs_session) throw;
    }
}

// ------------------------------------------------------------------------------------------------------ bodies

asio::awaitable<candidacy::term_ptr> candidacy::begin_body(std::shared_ptr<candidacy> self) {
    term_ptr begun;
    const auto decided = [self, &begun] {
        const std::lock_guard lock(self->mutex_);
        if (self->failed_) rethrow_end(self->failed_, "run", self->path_);
        if (self->closing_) return true;
        begun = self->term_;
        if (begun) ++self->bodies_;
        return begun != nullptr;
    };
    co_await self->change_.until(decided, "run", self->path_);
    co_return begun;
}

void candidacy::end_body() noexcept {
    std::unique_lock lock(mutex_);
    assert(bodies_ > 0);
    --bodies_;
    change_.notify_all(std::move(lock));
}

bool candidacy::bodies_have_ended() const {
    const std::lock_guard lock(mutex_);
    return bodies_ == 0;
}

asio::awaitable<void> candidacy::until_over(std::shared_ptr<candidacy> self, term_ptr term) {
    const auto over = [self, term] { return self->term() != term; };
    co_await self->change_.until(over, "run", self->path_);
}

// ------------------------------------------------------------------------------------------------------ waits

candidate_status candidacy::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

// Under the mutex.
void candidacy::check_alive() const {
    if (failed_) rethrow_end(failed_, "next", path_);
    throw error(errc::client_closed, "next", path_, "this candidate was closed");
}

std::optional<candidate_status> candidacy::untold_status() const {
    const std::lock_guard lock(mutex_);
    if (status_ != told_) return status_;
    if (status_.state == candidate_state::ended) check_alive();
    return std::nullopt;
}

asio::awaitable<candidate_status> candidacy::next(std::shared_ptr<candidacy> self) {
    const auto turn = self->reading_.begin("next", self->path_, "next() of this candidate");
    const auto news = [self] { return self->untold_status(); };
    const std::optional<candidate_status> now = co_await self->change_.until(news, "next", self->path_);
    co_await yield_turn();
    const std::lock_guard lock(self->mutex_);
    self->told_ = now;
    co_return *now;
}

asio::awaitable<void> candidacy::until_closed(std::shared_ptr<candidacy> self) {
    const auto ended = [self] { return self->status().state == candidate_state::ended; };
    co_await self->change_.until(ended, "close", self->path_);
    const std::lock_guard lock(self->mutex_);
    if (self->failed_to_leave_) rethrow_end(self->failed_, "close", self->path_);
}

}  // namespace zkasio::election_detail
