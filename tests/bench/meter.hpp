#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace bench {

double now();                           ///< seconds, of one clock for all processes of the machine
double cpu_seconds(pid_t process = 0);  ///< of this one, or of another

/// What one process has to say about its part in a measurement. Goes through a socket as it is.
struct report {
    double begin = 0, end = 0;  ///< see now()
    double operations = 0;      ///< hand-offs, or cycles
    double crossings = 0;       ///< hand-offs through the server; of the standard recipe, all
    double cpu = 0;             ///< seconds
    double requests = 0;        ///< of this process's sessions, as the server counted them
    double bytes = 0;           ///< received
    double heap = 0;            ///< bytes more in use when all waited than before; of a peer, of resident memory
    double threads = 0;
    double p50 = 0, p99 = 0;  ///< seconds
};

/// Of the connections that a process has to a server at this moment, since each began.
struct traffic {
    double requests = 0;  ///< as the server counts them: pings, too
    double bytes = 0;     ///< received by the process
};
/// @param server ADDRESS:PORT. @param process this one, if 0.
traffic traffic_of(const std::string& server, pid_t process = 0);

/// The answer to a command of four letters, such as "cons".
std::string ask_server(const std::string& server, const std::string& four_letters);
/// Entries in the server's two tables of watches. A recursive watch is one in both.
double watches_at(const std::string& server);
/// The process that listens there, of this machine. Throws std::runtime_error if none is found.
pid_t process_of(const std::string& server);

/// Collects times for report::p50 and p99.
class latencies {
public:
    void add(double seconds) { all_.push_back(seconds); }
    void write_to(report& r);

private:
    std::vector<double> all_;
};

/// Counts what the sessions of a process cost, this one or a child of it, from start() to stop(). The same for every
/// client: it asks the kernel and the server, not the client.
class meter {
public:
    explicit meter(std::string server, pid_t child = 0) : server_(std::move(server)), child_(child) {}

    void start();
    void all_wait();
    /// @param own_exists requests among all that are the benchmark's own, all of them exists() of a node
    void stop(report& result, int own_exists);

private:
    double memory() const;

    std::string server_;
    pid_t child_;
    traffic before_;
    double cpu_ = 0, heap_ = 0, heap_all_wait_ = 0, threads_ = 0;
};

}  // namespace bench
