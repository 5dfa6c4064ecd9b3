#include <zkasio/loss_reason.hpp>

namespace zkasio {

std::string_view to_string(loss_reason r) noexcept {
    switch (r) {
        case loss_reason::none: return "held";
        case loss_reason::released: return "released";
        case loss_reason::session_expired: return "session expired";
        case loss_reason::lease_ended: return "lease ended";
        case loss_reason::node_deleted: return "node deleted";
        case loss_reason::suspended: return "connection lost";
        case loss_reason::closed: return "client closed";
        case loss_reason::forked: return "held by the parent process";
    }
    return "unknown";
}

}  // namespace zkasio
