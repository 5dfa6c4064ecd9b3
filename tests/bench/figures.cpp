#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace bench {
namespace {

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v.empty() ? std::nan("") : v[v.size() / 2];
}

}  // namespace

double rate(const outcome& o) { return o.sum.operations / (o.sum.end - o.sum.begin); }
double drain(const outcome& o) { return o.released > 0 ? o.sum.operations / (o.sum.end - o.released) : 0; }
double time_each(const outcome& o) { return 1 / rate(o); }
double seconds(const outcome& o) { return o.sum.end - o.sum.begin; }
double requests(const outcome& o) { return o.sum.requests / o.sum.operations; }
double bytes(const outcome& o) { return o.sum.bytes / o.sum.operations; }
double cpu_us(const outcome& o) { return o.sum.cpu * 1e6 / o.sum.operations; }
double kib(const outcome& o) { return o.sum.heap / 1024 / o.sum.operations; }
double threads(const outcome& o) { return o.sum.threads; }
double p50_us(const outcome& o) { return o.sum.p50 * 1e6; }
double p99_us(const outcome& o) { return o.sum.p99 * 1e6; }

const std::vector<column> queue_columns{{"hand-offs/s", "%12.0f", rate},  {"drain/s", "%9.0f", drain},
                                        {"requests", "%10.3f", requests}, {"bytes rcvd", "%11.0f", bytes},
                                        {"CPU us", "%8.1f", cpu_us},      {"KiB", "%8.2f", kib},
                                        {"threads", "%8.0f", threads}};
const std::vector<column> cycle_columns{{"cycles/s", "%12.0f", rate},
                                        {"requests", "%10.3f", requests},
                                        {"bytes rcvd", "%11.0f", bytes},
                                        {"CPU us", "%8.1f", cpu_us},
                                        {"threads", "%8.0f", threads}};
const std::vector<column> latency_columns{{"p50 us", "%9.0f", p50_us},      {"p99 us", "%9.0f", p99_us},
                                          {"requests", "%10.3f", requests}, {"bytes rcvd", "%11.0f", bytes},
                                          {"CPU us", "%8.1f", cpu_us},      {"threads", "%8.0f", threads}};

int width(const column& c) { return std::atoi(c.format + 1); }

double median_of(const rounds& all, double (*value)(const outcome&)) {
    std::vector<double> v;
    for (const outcome& o : all) v.push_back(value(o));
    return median(v);
}

void ratio(const std::string& name, double value, limit how, double target) {
    if (how == limit::none) {
        std::printf("ratio %-44s %9.3f  -\n", name.c_str(), value);
        return;
    }
    const bool met = how == limit::at_least ? value >= target : value <= target;
    std::printf("ratio %-44s %9.3f  %s%g%s\n", name.c_str(), value, how == limit::at_least ? ">=" : "<=", target,
                met ? "" : "  MISSED");
}

void ratio(const std::string& name, const rounds& ours, const rounds& theirs, double (*value)(const outcome&),
           limit how, double target) {
    std::vector<double> v;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        v.push_back(value(ours[i]) / value(theirs[i]));
    ratio(name, v.empty() ? std::nan("") : median(v), how, target);
}

}  // namespace bench
