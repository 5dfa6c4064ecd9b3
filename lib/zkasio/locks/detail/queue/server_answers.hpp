#pragma once

#include <zkasio/error.hpp>

/// The meaning of the answers to a queue's requests. Pure.
namespace zkasio::lock_detail {

enum class create_answer {
    created,
    lost,  ///< there may be a node
    no_directory,
    refused_for_now,  ///< there is no node: sent again after a pause
    failed,
};
create_answer answer_of_create(const error& e) noexcept;

/// The answer to a removal that has failed.
enum class removal_answer {
    successor_missing,  ///< the node still exists: the node of a successor, error::path(), was deleted
    session_over,
    failed,
};
/// @param over the session is known to be over.
removal_answer answer_of_removal(const error& e, bool over) noexcept;

}  // namespace zkasio::lock_detail
