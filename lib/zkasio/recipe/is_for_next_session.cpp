#include <zkasio/recipe/is_for_next_session.hpp>

namespace zkasio {

bool is_for_next_session(const error& failed) noexcept {
    return failed.code() == errc::session_expired && !failed.outcome_unknown();
}

}  // namespace zkasio
