#include <zkasio/election/leader_view.hpp>

namespace zkasio {

std::string_view to_string(leader_state s) noexcept {
    switch (s) {
        case leader_state::leader: return "leader";
        case leader_state::nobody: return "nobody";
        case leader_state::unknown: return "unknown";
    }
    return "?";
}

}  // namespace zkasio
