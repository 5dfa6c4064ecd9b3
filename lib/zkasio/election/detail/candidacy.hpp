#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/room_to_stand.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Decides what leader_election::lead() does when a term has ended. No input, no output, no waiting.
namespace zkasio::election_detail {

/// How a term has ended.
struct term_end {
    bool held = true;            ///< this candidate still leads, as far as it knows
    bool resigned = false;       ///< on purpose, by the body
    std::exception_ptr failure;  ///< the exception of the body; null: the body has returned
    bool completed = false;      ///< the body had returned before the leadership was lost
    bool outcome_unknown = false;  ///< of a write of the body, whatever has become of its exception

    bool lost() const noexcept { return !held && !resigned && !completed; }
};

enum class after_term {
    complete,  ///< lead() returns
    fail,      ///< lead() throws term_end::failure
    stand_again,
    pause_and_stand_again,
};

after_term decide(const term_end& end, const lead_options& how);

/// Whether leadership::run() has thrown this exception because the node at `path` was lost.
bool tells_of_loss(const std::exception_ptr& thrown, std::string_view path);

/// The body's exception in what leadership::run() has thrown after a loss. Null: run() has only told of the loss.
std::exception_ptr failure_in_loss(std::exception_ptr thrown);

/// A term of a candidate, from its election until its node is gone.
struct candidate_term {
    candidate_term(leadership elected, one_shot_event s, one_shot_event g)
        : leader(std::move(elected)), stop(std::move(s)), gone(std::move(g)) {}

    leadership leader;          // resigned by the loop alone
    const one_shot_event stop;  // the term is to end
    const one_shot_event gone;  // the term has ended, and its node is removed
    std::exception_ptr not_resigned;  // the servers have refused to remove the node; written before `gone` is fired
};

/// Between the users of a candidate, on any threads, and the loop that stands for election, on the client's strand.
class candidacy {
public:
    using term_ptr = std::shared_ptr<candidate_term>;

    /// @param events of the client whose close ends all waits. @param path of the election.
    candidacy(const operations& events, std::string path);

    const std::string& path() const noexcept { return path_; }
    const operations& events() const noexcept { return events_; }

    // ------------------------------------------------------------------------------------------ for users
    /// Null: there is none.
    term_ptr term() const noexcept;
    candidate_status status() const;
    static asio::awaitable<candidate_status> next(std::shared_ptr<candidacy> self);
    /// Ends the present term. Null: there was none.
    term_ptr step_down();
    /// As step_down(). From now on closing() is true.
    void close();
    static asio::awaitable<void> until_closed(std::shared_ptr<candidacy> self);

    /// The term of a new body, which ends with end_body(). Null: the candidate was closed.
    static asio::awaitable<term_ptr> begin_body(std::shared_ptr<candidacy> self);
    void end_body() noexcept;
    static asio::awaitable<void> until_over(std::shared_ptr<candidacy> self, term_ptr term);

    // ------------------------------------------------------------------------------------------ for the loop
    /// The body of run_in_each_session(). Returns when the candidate was closed.
    static asio::awaitable<void> stand(std::shared_ptr<candidacy> self, session on, leader_election election);
    /// No stand() runs. On the strand.
    bool is_idle() const noexcept { return !running_; }
    /// Called when run_in_each_session() is over. @param why null: the candidate was closed.
    void end(const std::exception_ptr& why);

private:
    static asio::awaitable<void> serve(std::shared_ptr<candidacy> self, leadership elected);
    static asio::awaitable<void> stand_until_closed(std::shared_ptr<candidacy> self, session on,
                                                    leader_election election);
    bool closing() const;
    term_ptr begin_term(leadership elected);
    void end_term(const term_ptr& term, loss_reason why);
    term_ptr take_term(std::unique_lock<std::mutex> lock, loss_reason why);
    bool bodies_have_ended() const;
    static asio::awaitable<void> until_bodies_ended(std::shared_ptr<candidacy> self, std::string operation);
    static asio::awaitable<void> until_bodies_ended_or_closed(std::shared_ptr<candidacy> self);
    std::optional<candidate_status> untold_status() const;
    void check_alive() const;

    const operations events_;
    const std::string path_;
    const one_shot_event close_;
    bool running_ = false;  // on the strand: stand() runs
    room_to_stand room_;    // on the strand
    one_at_a_time reading_;
    mutable std::mutex mutex_;
    // Guarded by mutex_:
    term_ptr term_;
    std::size_t bodies_ = 0;  // of run(), under the term and under lost ones
    candidate_status status_;
    std::optional<candidate_status> told_;  // by next()
    std::exception_ptr failed_;
    bool closing_ = false, failed_to_leave_ = false;
    change_event change_;
};

}  // namespace zkasio::election_detail
