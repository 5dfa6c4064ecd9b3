#include "support/pace.hpp"

#include "support/surroundings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace zkasio::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double of_the_build = 1.5;
#else
constexpr double of_the_build = 1;
#endif

// Those who would run, for each processor.
double of_the_load() {
    double running = 0;
    std::ifstream("/proc/loadavg") >> running;
    return running / std::max(1u, std::thread::hardware_concurrency());
}

double measure() {
    if (!surroundings::current().has_real_time()) return 1;
    const char* const given = std::getenv("ZKASIO_TEST_PACE");
    return std::max(given ? std::atof(given) : 1, std::clamp(of_the_build * std::max(1.0, of_the_load()), 1.0, 3.0));
}

}  // namespace

double pace() {
    static const double once = measure();
    return once;
}

std::chrono::milliseconds paced(std::chrono::milliseconds on_an_idle_machine) {
    return std::chrono::milliseconds(std::llround(static_cast<double>(on_an_idle_machine.count()) * pace()));
}

}  // namespace zkasio::test
