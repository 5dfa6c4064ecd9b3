#include "verdict.hpp"

#include <cstdio>

namespace bench {

void ratio(const std::string& name, double value, limit how, double target) {
    if (how == limit::none) {
        std::printf("ratio %-44s %9.3f  -\n", name.c_str(), value);
        std::fflush(stdout);
        return;
    }
    const bool met = how == limit::at_least ? value >= target : value <= target;
    std::printf("ratio %-44s %9.3f  %s%g%s\n", name.c_str(), value, how == limit::at_least ? ">=" : "<=", target,
                met ? "" : "  MISSED");
    std::fflush(stdout);
}

}  // namespace bench
