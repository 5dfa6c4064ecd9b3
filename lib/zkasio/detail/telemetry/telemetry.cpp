#include <zkasio/detail/telemetry/telemetry.hpp>

namespace zkasio::detail {

void telemetry::operation_ended(const request& what, operation_report r) noexcept {
    r.operation = operation_name(what);
    r.path = path_of(what);
    tell(std::move(r));
}

void telemetry::happened(const session_event& e) noexcept {
    counters.happened(e.state);
    tell(e);
}

}  // namespace zkasio::detail
