#include <zkasio/membership/persistent_node_state.hpp>

namespace zkasio {

std::string_view to_string(persistent_node_state s) noexcept {
    switch (s) {
        case persistent_node_state::creating: return "creating";
        case persistent_node_state::taken: return "taken";
        case persistent_node_state::standing: return "standing";
        case persistent_node_state::ended: return "ended";
    }
    return "unknown";
}

}  // namespace zkasio
