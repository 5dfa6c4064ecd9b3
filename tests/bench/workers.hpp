#pragma once

#include "meter.hpp"

#include <string>
#include <vector>

namespace bench {

/// What one process of a measurement is to do.
struct task {
    std::string server, directory;
    int waiters = 0;          ///< of this process
    int sessions = 1;         ///< of this process, that have as many waiters each
    int contenders = 0;       ///< children of `directory` when everybody has queued
    double seconds = 1;       ///< how long to go round in cycles
    bool await_release = true;
    bool on_strand = false;   ///< zkasio: coroutines run on the client's strand
    int hand_offs = 0;
    int idle_ms = 0;          ///< before each hand-off
    std::string peer;         ///< one of peers(), for theirs
    std::string warm_up;      ///< a second directory, for what a peer does unmeasured
};

/// The worker's way to the process that conducts the measurement.
class conductor_link {
public:
    explicit conductor_link(int fd) : fd_(fd) {}
    void ready() const;   ///< blocks until all workers are
    void queued() const;  ///< all nodes exist: the first holder may go
    void done(const report& result) const;

private:
    int fd_;
};

// Each runs in a process of its own.
void raw_local_queue(const task&, const conductor_link&);
void raw_standard_queue(const task&, const conductor_link&);
void raw_sessions_queue(const task&, const conductor_link&);
void raw_cycles(const task&, const conductor_link&);
void raw_hand_offs(const task&, const conductor_link&);
void zkasio_queue(const task&, const conductor_link&);
void zkasio_sessions_queue(const task&, const conductor_link&);
void zkasio_cycles(const task&, const conductor_link&);
void zkasio_hand_offs(const task&, const conductor_link&);
void peer_queue(const task&, const conductor_link&);
void peer_cycles(const task&, const conductor_link&);
void peer_hand_offs(const task&, const conductor_link&);

/// Other libraries, as far as their programs were built. Says which are missing.
std::vector<std::string> peers();

/// Two sessions: how often the waiting one makes sure that it has really queued, by an exists() round trip.
inline constexpr int settling_round_trips = 3;

}  // namespace bench
