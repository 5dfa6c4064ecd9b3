#pragma once

#include <zkasio/election/leader_election.hpp>

#include <exception>
#include <string_view>

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

}  // namespace zkasio::election_detail
