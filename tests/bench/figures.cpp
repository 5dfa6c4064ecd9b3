#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace bench {

double rate(const outcome& o) { return o.sum.operations / (o.sum.end - o.sum.begin); }
double drain(const outcome& o) { return o.released > 0 ? o.sum.operations / (o.sum.end - o.released) : 0; }
double crossing_ms(const outcome& o) { return (o.sum.end - o.released) * 1e3 / o.sum.crossings; }
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
const std::vector<column> crossing_columns{{"hand-offs/s", "%12.0f", rate},        {"drain/s", "%9.0f", drain},
                                           {"ms/crossing", "%12.3f", crossing_ms}, {"requests", "%10.3f", requests},
                                           {"bytes rcvd", "%11.0f", bytes},        {"CPU us", "%8.1f", cpu_us},
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

double median_of(const std::vector<outcome>& rounds, double (*value)(const outcome&)) {
    std::vector<double> v;
    for (const outcome& o : rounds) v.push_back(value(o));
    std::sort(v.begin(), v.end());
    return v.empty() ? std::nan("") : v[v.size() / 2];
}

}  // namespace bench
