#pragma once

#include <chrono>

namespace zkasio::test {

/// How many times slower than an idle machine this one is, between 1 and 3: the one place that knows. Measured once for
/// each process (sanitizers, the load of the machine), and at least $ZKASIO_TEST_PACE. 1 where time is virtual, see
/// surroundings.
double pace();

/// A time that a slow machine may use up, stretched to this one: a session timeout, or the patience of a wait. Not for
/// times that a test is about, such as "a pause of 100 ms".
std::chrono::milliseconds paced(std::chrono::milliseconds on_an_idle_machine);

}  // namespace zkasio::test
