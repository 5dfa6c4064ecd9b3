#include <zkasio/detail/base/random_engine.hpp>

#include <zkasio/detail/base/fork_mark.hpp>

namespace zkasio::detail {
namespace {

std::mt19937_64 seeded_by_the_system() {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
}

}  // namespace

std::mt19937_64& random_engine() {
    thread_local std::mt19937_64 engine = seeded_by_the_system();
    thread_local fork_mark seeded_here;
    if (seeded_here.forked()) {  // a child process is not to use the names of its parent
        engine = seeded_by_the_system();
        seeded_here = fork_mark();
    }
    return engine;
}

std::mt19937_64& jitter_engine() {
    thread_local std::mt19937_64 engine = seeded_by_the_system();
    return engine;
}

double jitter() { return std::uniform_real_distribution<double>(0, 1)(jitter_engine()); }

}  // namespace zkasio::detail
