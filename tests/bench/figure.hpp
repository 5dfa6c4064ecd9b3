#pragma once

#include <cstdio>
#include <string>

namespace bench {

/// Prints one figure for scripts/docs/plots.py, which knows it by `name`: "table | row | column". The figures of several
/// rounds have the same name, in the order of the rounds.
inline void figure(const std::string& name, double value) {
    std::printf("figure %s  %.9g\n", name.c_str(), value);
    std::fflush(stdout);
}

}  // namespace bench
