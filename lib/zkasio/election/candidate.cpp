#include <zkasio/election/candidate.hpp>

#include <zkasio/election/detail/candidacy.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_loop.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <system_error>
#include <utility>

namespace zkasio {

using namespace election_detail;

std::string_view to_string(candidate_state s) noexcept {
    switch (s) {
        case candidate_state::standing: return "standing";
        case candidate_state::leading: return "leading";
        case candidate_state::ended: return "ended";
    }
    return "unknown";
}

namespace {

using candidacy_ptr = std::shared_ptr<candidacy>;
using term_ptr = candidacy::term_ptr;

session_loop begin_to_stand(const client& zk, candidacy_ptr state, leader_election election) {
    auto body = [state, election](const session& on) { return candidacy::stand(state, on, election); };
    auto ended = [state](std::exception_ptr why) { state->end(why); };
    return run_in_each_session(zk, body, ended);
}

// On the client's strand, as all background work.
asio::awaitable<void> leave_in_background(session_loop loop, candidacy_ptr state) {
    if (state->is_idle()) loop.stop();
    try {
        co_await loop.stopped();
    } catch (const error&) {  // callers of close() are told, see candidacy::until_closed()
    }
}

}  // namespace

/// Stands for election; leaves when destroyed.
class election_detail::candidacy_owner {
public:
    candidacy_owner(const client& zk, candidacy_ptr state, leader_election election)
        : state_(std::move(state)), loop_(begin_to_stand(zk, state_, std::move(election))) {}
    candidacy_owner(const candidacy_owner&) = delete;
    candidacy_owner& operator=(const candidacy_owner&) = delete;
    ~candidacy_owner() { leave(); }

    void leave() {
        if (left_.exchange(true)) return;
        state_->close();
        toolbox(state_->events()).run_in_background(leave_in_background(std::move(loop_), state_));
    }

private:
    const candidacy_ptr state_;
    session_loop loop_;
    std::atomic<bool> left_{false};
};

namespace {

const candidacy_ptr& require_valid(const candidacy_ptr& state, std::string_view operation) {
    if (!state) throw error(errc::invalid_argument, operation, {}, "this candidate was moved from");
    return state;
}

// Counts as a body of the term while this object lives.
class body_entry {
public:
    explicit body_entry(candidacy& state) : state_(state) {}
    body_entry(const body_entry&) = delete;
    body_entry& operator=(const body_entry&) = delete;
    ~body_entry() { state_.end_body(); }

private:
    candidacy& state_;
};

// Runs the body until it ends, or is cancelled with the term.
// @param untold whether the body has left the outcome of a write unknown, and run() goes on.
asio::awaitable<void> run_in_term(const candidate_body& body, candidacy& state, term_ptr term,
                                  std::chrono::nanoseconds stop_margin, bool& untold) {
    std::exception_ptr failed, thrown;  // the body's own exception is dropped when term->stop has ended the body
    try {
        const std::function<asio::awaitable<void>()> bound = [&] { return body(term->leader); };
        auto work = lock_detail::noting(bound, thrown);
        const auto under_lease = [&] { return term->leader.run(work, stop_margin); };
        co_await term->stop.run_until(under_lease);
    } catch (...) {
        failed = std::current_exception();
    }
    term_end end;
    end.held = state.term() == term && term->leader.held();
    if (failed) end.failure = end.held ? failed : failure_in_loss(failed);
    const after_term next = decide(end, lead_options().requeue().fail_with_connection());
    if (next == after_term::fail) std::rethrow_exception(end.failure);
    untold = leaves_outcome_unknown(failed ? failed : thrown);
}

asio::awaitable<candidate_status> next_of(candidacy_ptr state) {
    co_return co_await candidacy::next(require_valid(state, "next"));
}

asio::awaitable<void> until_resigned(term_ptr term, std::string path) {
    if (!term) co_return;
    co_await errors_as("step_down", std::move(path), term->gone.wait());
    if (term->not_resigned) std::rethrow_exception(term->not_resigned);
}

asio::awaitable<void> until_closed(candidacy_ptr state) {
    if (state) co_await candidacy::until_closed(state);
}

}  // namespace

asio::awaitable<void> election_detail::run_in_terms(candidate_body body, candidacy_ptr state,
                                                   std::chrono::nanoseconds stop_margin) {
    require_valid(state, "run");
    if (!body) throw error(errc::invalid_argument, "run", state->path(), "the body is empty");
    bool untold = false;
    try {
        for (;;) {
            const term_ptr term = co_await candidacy::begin_body(state);
            if (!term) co_return;
            {
                // Here, and not in run_in_term(), which does not begin if this coroutine was cancelled meanwhile.
                const body_entry entry(*state);
                untold = false;
                co_await run_in_term(body, *state, term, stop_margin, untold);
            }
            co_await candidacy::until_over(state, term);
        }
    } catch (const std::system_error&) {
        if (!untold) throw;
        rethrow_with_write_of_body("run", state->path());
    }
}

candidate::candidate(client zk, std::string path, leader_election_options options) : path_(path) {
    const leader_election election(zk, std::move(path), std::move(options));
    try {
        state_ = std::make_shared<candidacy>(zk, path_);
        owner_ = std::make_shared<candidacy_owner>(zk, state_, election);
    } catch (const error&) {
        rethrow_as("candidate", path_);
    }
}

bool candidate::leads() const noexcept {
    const std::shared_ptr<const leadership> now = term();
    return now && now->held();
}

std::shared_ptr<const leadership> candidate::term() const noexcept {
    const term_ptr now = state_ ? state_->term() : nullptr;
    return now ? std::shared_ptr<const leadership>(now, &now->leader) : nullptr;
}

candidate_status candidate::status() const {
    return state_ ? state_->status() : candidate_status{candidate_state::ended, {}, {}};
}

asio::awaitable<candidate_status> candidate::next() const { return next_of(state_); }

asio::awaitable<void> candidate::step_down() const {
    return until_resigned(state_ ? state_->step_down() : nullptr, path_);
}

asio::awaitable<void> candidate::close() const {
    if (owner_) owner_->leave();
    return until_closed(state_);
}

}  // namespace zkasio
