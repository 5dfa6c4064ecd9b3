#include <zkasio/locks/detail/queue/server_answers.hpp>

namespace zkasio::lock_detail {

create_answer answer_of_create(const error& e) noexcept {
    if (e.outcome_unknown() && e.code() == condition::retryable) return create_answer::lost;
    if (e.code() == zk_errc::no_node) return create_answer::no_directory;
    if (e.code() == condition::retryable) return create_answer::refused_for_now;
    return create_answer::failed;
}

removal_answer answer_of_removal(const error& e, bool over) noexcept {
    if (!over && e.code() == zk_errc::no_node) return removal_answer::successor_missing;
    if (e.code() == condition::session_ended) return removal_answer::session_over;
    return removal_answer::failed;
}

}  // namespace zkasio::lock_detail
