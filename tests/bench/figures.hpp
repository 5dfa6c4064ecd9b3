#pragma once

#include "conductor.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench {

// What an outcome is worth, by operation where that makes sense.
double rate(const outcome& o);
double drain(const outcome& o);
double time_each(const outcome& o);
double seconds(const outcome& o);
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

extern const std::vector<column> queue_columns, cycle_columns, latency_columns;

int width(const column& c);

/// Variants of one measurement, by round.
using rounds = std::vector<outcome>;
using results = std::map<std::string, rounds>;

double median_of(const rounds& all, double (*value)(const outcome&));

enum class limit { none, at_least, at_most };

/// `name` and `value` in a fixed form, for scripts.
void ratio(const std::string& name, double value, limit how = limit::none, double target = 0);
/// The median of what one round's `ours` is to its `theirs`.
void ratio(const std::string& name, const rounds& ours, const rounds& theirs, double (*value)(const outcome&),
           limit how = limit::none, double target = 0);

}  // namespace bench
