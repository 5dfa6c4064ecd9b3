#pragma once

#include "conductor.hpp"

#include <vector>

namespace bench {

// What an outcome is worth, by operation where that makes sense.
double rate(const outcome& o);
double drain(const outcome& o);
double crossing_ms(const outcome& o);  ///< while the queue drains
double requests(const outcome& o);
double bytes(const outcome& o);
double cpu_us(const outcome& o);
double kib(const outcome& o);
double threads(const outcome& o);
double p50_us(const outcome& o);
double p99_us(const outcome& o);

struct column {
    const char* title;
    const char* format;
    double (*value)(const outcome&);
};

extern const std::vector<column> queue_columns, crossing_columns, cycle_columns, latency_columns;

int width(const column& c);

double median_of(const std::vector<outcome>& rounds, double (*value)(const outcome&));

}  // namespace bench
