#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zkasio {

enum class candidate_state {
    standing,  ///< waits for its election, or for a connection
    leading,   ///< is elected
    ended,     ///< was closed, or has failed: the candidate does not stand any more
};

ZKASIO_EXPORT std::string_view to_string(candidate_state s) noexcept;

/// What a candidate tells of itself.
struct candidate_status {
    candidate_state state = candidate_state::standing;
    /// leadership::token() of the present term, or else of the last one; 0 before the first term.
    fencing_token token;
    /// Why the last term has ended: loss_reason::released after step_down() and close(). loss_reason::none while this
    /// candidate leads, and before its first term.
    loss_reason reason = loss_reason::none;

    friend bool operator==(const candidate_status&, const candidate_status&) = default;
};

/// The body of candidate::run().
using candidate_body = std::function<asio::awaitable<void>(const leadership&)>;

namespace election_detail {
class candidacy;
class candidacy_owner;
ZKASIO_EXPORT asio::awaitable<void> run_in_terms(candidate_body body, std::shared_ptr<candidacy> state,
                                                 std::chrono::nanoseconds stop_margin);
}  // namespace election_detail

/// Stands for election in the background, from the construction to close(): for programs in which other code than the
/// leader's work asks who leads, or ends a term. Everything that leader_election says of queues, nodes and leases
/// applies here; candidates and coroutines in leader_election::campaign() or lead() stand in one election. So a
/// candidate waits for one term of each candidate ahead of it, however far that one is, and for no other; a leader that
/// is cut off is followed after its session timeout.
///
/// | what happens                                | the candidate                                                      |
/// |---------------------------------------------|--------------------------------------------------------------------|
/// | it is elected                               | leads, until one of the next rows                                  |
/// | the leadership is lost, with its session or | stands again when the bodies of run() have ended, at the end of    |
/// | in it                                       | the queue, in the next session if its own is over                  |
/// | step_down()                                 | resigns when the bodies of run() have ended, and stands again, at  |
/// |                                             | the end of the queue; if no other candidate waits, it leads again  |
/// | close(), or the object is destroyed         | resigns when the bodies of run() have ended, or leaves the queue   |
/// | there is no server, or the connection is    | goes on after the pauses of client_options::retry(), for as long   |
/// | lost                                        | as it takes                                                        |
/// | an error that no later attempt can mend     | ends: next() and run() fail with this error                        |
///
/// As long as the body of a lost term does not end, whatever was cancelled, the candidate does not stand: it would keep
/// others from leading, and do no work. close() does not wait for such a body.
///
/// Such an error is errc::client_closed, errc::forked, zk_errc::auth_failed; with session_renewal::none
/// errc::session_expired; and what campaign() fails with and is not condition::retryable: errc::foreign_child,
/// zk_errc::no_auth, and others.
///
/// *Lifetime*: move-only. When the object is destroyed, the candidate leaves in the background, see close();
/// client::idle() waits for the end of the candidate, and a second idle() for the removal of a node that has waited in
/// the queue. Until the candidate has left, it keeps the client open, and like a guard it must not
/// outlive the execution context of its client. All members may be called on any thread. The coroutines that the
/// members return may be awaited when the object is gone. A default-constructed or moved-from object does not lead,
/// and is candidate_state::ended; its step_down() and close() do nothing, and next() and run() fail with
/// errc::invalid_argument.
class ZKASIO_EXPORT candidate {
public:
    candidate() noexcept = default;
    /// Throws errc::invalid_path, and errc::invalid_argument for a client that was moved from.
    /// @param path of the election, see leader_election.
    candidate(client zk, std::string path, leader_election_options options = leader_election_options());
    candidate(candidate&&) noexcept = default;
    candidate& operator=(candidate&&) noexcept = default;

    /// Whether this candidate leads: as leadership::held(), false before another candidate can be elected, as far as a
    /// client can know. False from the call of step_down() or close() on, while the bodies of run() still end. Sends no
    /// request.
    bool leads() const noexcept;

    /// The present term; null when this candidate does not lead. The term may be kept: when it is over, its held() is
    /// false. After step_down() and close(), when leads() is false already, a kept term is still held() while the
    /// bodies of run() end, and until the candidate resigns after that: it is the bodies' term. Its
    /// guard().revoke_requested() tells that an operator asks the leader to resign, which step_down() does.
    std::shared_ptr<const leadership> term() const noexcept;

    /// What was known last: the news of a loss may be on its way. Only leads() looks at the clock.
    candidate_status status() const;

    /// *Completes when* the status differs from the one that next() has returned last, with the newest status; the
    /// first time at once. A slow reader hears of the newest status only; another term has another token.
    /// candidate_state::ended is told once, as the last one.
    /// *Fails with* errc::invalid_argument when another coroutine awaits next(); errc::client_closed after the last
    /// status of a candidate that was closed, and with the error that has ended it otherwise.
    /// *Cancellation*: ends the wait; the next call tells what this one has not told.
    asio::awaitable<candidate_status> next() const;

    /// Runs `body(const leadership&)`, a coroutine, in each term, on a strand over the caller's executor. Several
    /// run()s may run at a time, and each has its body in each term.
    ///   - The body returns: runs again in the next term. (The present one goes on.)
    ///   - The term is lost, or ends with step_down() or close(): the body receives a terminal cancellation. When it
    ///     has really ended, a cancellation or a zkasio::error that it has thrown is dropped, because the end of the
    ///     term may have caused it. The body runs again in the next term.
    ///   - The body throws anything else, or throws while the term lasts: run() fails with that exception. The
    ///     candidate goes on.
    ///
    /// *Completes when* the candidate is closed, and the body has ended. The candidate may still be leaving then, and
    /// its status() not be candidate_state::ended: close() waits for that.
    /// *Fails with* what the body throws, see above, and with the error that has ended the candidate otherwise. If the
    /// body that ran last has left the outcome of a write unknown, and its exception was dropped, an error or a
    /// cancellation that ends run() after that has error::outcome_unknown(). A run() that goes on, or completes because
    /// the candidate was closed, does not tell of it: a body that has to know catches the exception of its write.
    /// *Cancellation*: is passed on to the body. When the body has ended, run() fails with
    /// asio::error::operation_aborted, or with what else the body has thrown.
    /// *Lifetime* of the body: see kept_body.hpp.
    /// @param stop_margin as in lock_guard::run().
    template <class Body>
    asio::awaitable<void> run(Body&& body, any_duration stop_margin = std::chrono::nanoseconds(0)) const {
        static_assert(std::is_void_v<detail::body_value<Body, const leadership&>>,
                      "the body of a candidate takes a const leadership&, and returns asio::awaitable<void>");
        return detail::run_kept(std::forward<Body>(body), &election_detail::run_in_terms, state_,
                                std::chrono::nanoseconds(stop_margin));
    }

    /// Ends the present term, from the call on, whether or not the result is awaited. No effect when this candidate
    /// does not lead.
    /// *Completes when* the bodies of run() have ended and the server has removed the leader's node, or the session is
    /// over.
    /// *Fails with* errc::client_closed, errc::forked, and with the servers' error when they refuse to remove the node.
    /// *Cancellation*: ends the wait; the resignation goes on.
    asio::awaitable<void> step_down() const;

    /// Ends the present term as step_down() does, or leaves the queue, and does not stand again: from the call on,
    /// whether or not the result is awaited. A second call waits for the same end.
    /// *Completes when* the candidate has ended, and, if it was leading, the server has removed its node. (If it was
    /// waiting in the queue, its node is being removed then: client::idle() waits for that.)
    /// *Fails with* what ends the client first, and with the servers' error when they refuse to remove the leader's
    /// node.
    /// *Cancellation*: ends the wait; the candidate leaves nevertheless.
    asio::awaitable<void> close() const;

    /// The election's directory, which all participants name.
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    std::shared_ptr<election_detail::candidacy> state_;
    std::shared_ptr<election_detail::candidacy_owner> owner_;
};

}  // namespace zkasio
