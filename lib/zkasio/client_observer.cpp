#include <zkasio/client_observer.hpp>

namespace zkasio {

std::string_view to_string(hand_over h) noexcept {
    switch (h) {
        case hand_over::none: return "none";
        case hand_over::local: return "local";
        case hand_over::remote: return "remote";
    }
    return "unknown";
}

std::chrono::system_clock::time_point to_system_time(boot_clock::time_point t) noexcept {
    using std::chrono::system_clock;
    return system_clock::now() + std::chrono::duration_cast<system_clock::duration>(t - boot_clock::now());
}

}  // namespace zkasio
