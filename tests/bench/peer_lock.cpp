// The same lock in other libraries, each in a program of its own (peers/README.md). What they cost is measured from
// outside.

#include "raw_session.hpp"
#include "workers.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

// Their waiter is a thread, which has to be scheduled between its requests.
constexpr int settling = 3 * settling_round_trips;

const std::vector<std::string> all_peers{"gozk", "kazoo", "curator"};

std::string program(const std::string& peer) { return ZKASIO_BENCH_PEERS_DIR "/" + peer; }

/// The program of task::peer, told what to do by lines on its standard input.
class peer {
public:
    explicit peer(const task& what) : session_(what.server) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the conductor's patience has limits
            ::dup2(ends[1], STDIN_FILENO);
            ::dup2(ends[1], STDOUT_FILENO);
            ::close_range(3, ~0U, 0);
            ::execl(program(what.peer).c_str(), what.peer.c_str(), what.server.c_str(), nullptr);
            std::_Exit(1);
        }
        ::close(ends[1]);
        line_ = ends[0];
        answers_ = ::fdopen(line_, "r");
        answer("ready");
    }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;
    ~peer() {
        std::fclose(answers_);  // it closes its sessions and ends
        if (asked_) ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    pid_t pid() const { return pid_; }

    void ask(const std::string& command) {
        asked_ = true;
        const std::string line = command + "\n";
        if (::send(line_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
            throw std::runtime_error("the peer has ended");
    }
    /// What follows `first` in the answer.
    std::istringstream answer(const std::string& first = "done") {
        while (!turn({&session_}, line_, 1000)) {
        }
        std::string line;
        for (int c; (c = std::getc(answers_)) != EOF && c != '\n';) line += static_cast<char>(c);
        std::istringstream words(line);
        std::string word;
        if (!(words >> word) || word != first)
            throw std::runtime_error("the peer says \"" + line + "\" instead of " + first);
        asked_ = false;
        return words;
    }

    /// While the peer is at work: seldom enough to leave the processors to it, and too often for the delay to count.
    void until_queued(const task& what) {
        const int pause_ms = 1 + what.contenders / 200;
        while (session_.children(what.directory) < what.contenders)
            if (turn({&session_}, line_, pause_ms)) throw std::runtime_error("the peer answers before all have queued");
    }

    /// Just-in-time compilers know it then.
    void warm_up(const std::string& command) {
        for (const double end = now() + 2; now() < end;) {
            ask(command);
            answer();
        }
    }

private:
    raw_session session_;
    pid_t pid_ = -1;
    int line_ = -1;
    std::FILE* answers_ = nullptr;
    bool asked_ = false;
};

template <typename... Words>
std::string command(const Words&... words) {
    std::ostringstream line;
    ((line << words << ' '), ...);
    return line.str();
}

}  // namespace

std::vector<std::string> peers() {
    std::vector<std::string> found;
    for (const std::string& name : all_peers) {
        if (::access(program(name).c_str(), X_OK) == 0)
            found.push_back(name);
        else
            std::printf("\nwithout %s: it was not there when the benchmarks were configured\n", name.c_str());
    }
    return found;
}

void peer_queue(const task& what, const conductor_link& conductor) {
    peer other(what);
    other.warm_up(command("queue", what.warm_up, what.waiters));
    report r;
    meter m(what.server, other.pid());
    m.start();
    conductor.ready();
    r.begin = now();
    other.ask(command("queue", what.directory, what.waiters));
    other.until_queued(what);
    m.all_wait();
    conductor.queued();
    other.answer();
    r.end = now();
    m.stop(r, 0);
    r.operations = r.crossings = what.waiters;
    conductor.done(r);
}

void peer_cycles(const task& what, const conductor_link& conductor) {
    peer other(what);
    other.warm_up(command("cycles", what.warm_up, what.seconds));
    report r;
    meter m(what.server, other.pid());
    m.start();
    conductor.ready();
    r.begin = now();
    other.ask(command("cycles", what.directory, what.seconds));
    other.answer() >> r.operations;
    r.end = now();
    m.stop(r, 0);
    conductor.done(r);
}

void peer_hand_offs(const task& what, const conductor_link& conductor) {
    peer other(what);
    other.warm_up(command("handoffs", what.warm_up, 100, 0, settling));
    report r;
    latencies took;
    meter m(what.server, other.pid());
    m.start();
    conductor.ready();
    r.begin = now();
    other.ask(command("handoffs", what.directory, what.hand_offs, what.idle_ms, settling));
    auto answer = other.answer();
    r.end = now();
    r.operations = what.hand_offs;
    int own_exists = 0;
    answer >> own_exists;
    for (double seconds; answer >> seconds;) took.add(seconds);
    m.stop(r, own_exists);
    took.write_to(r);
    conductor.done(r);
}

}  // namespace bench
