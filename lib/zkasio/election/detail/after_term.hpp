#pragma once

#include <zkasio/election/lead_options.hpp>

#include <exception>
#include <string_view>

/// What leader_election::lead() does when a term has ended. No input, no output, no waiting.
namespace zkasio::election_detail {

/// How a term has ended.
struct term_end {
    bool held = true;            ///< we still lead, as far as we know
    bool resigned = false;       ///< on purpose, by the body
    std::exception_ptr failure;  ///< what the body has thrown; null: it has returned
    bool completed = false;      ///< the body had returned before the leadership was lost

    bool lost() const noexcept { return !held && !resigned && !completed; }
};

enum class after_term {
    complete,  ///< lead() returns
    fail,      ///< lead() throws term_end::failure
    stand_again,
    pause_and_stand_again,
};

after_term decide(const term_end& end, const lead_options& how);

/// Whether leadership::run() has thrown this because of the loss of that node.
bool tells_of_loss(const std::exception_ptr& thrown, std::string_view path);

/// Of what leadership::run() has thrown after a loss: what the body has thrown. Null: no more than the loss.
std::exception_ptr failure_in_loss(std::exception_ptr thrown);

}  // namespace zkasio::election_detail
