#include "conductor.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace bench {
namespace {

struct message {
    message_kind what = message_kind::ready;
    report result;
};

void send(int fd, message m) {
    if (::send(fd, &m, sizeof m, MSG_NOSIGNAL) != sizeof m) std::_Exit(1);
}

void add(report& sum, const report& r, bool first) {
    sum.begin = first ? r.begin : std::min(sum.begin, r.begin);
    sum.end = std::max(sum.end, r.end);
    sum.operations += r.operations;
    sum.crossings += r.crossings;
    sum.cpu += r.cpu;
    sum.requests += r.requests;
    sum.bytes += r.bytes;
    sum.heap += r.heap;
    sum.threads = std::max(sum.threads, r.threads);
    sum.p50 = r.p50;
    sum.p99 = r.p99;
}

}  // namespace

conductor::~conductor() {
    if (!session_) return;  // there was no server
    try {
        session_.emplace(server_);
        for (const std::string& directory : left_)
            if (!directory.empty()) session_->remove(directory);
        session_->remove(root);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s is left behind: %s\n", root.c_str(), e.what());
    }
}

std::optional<outcome> conductor::measure(worker work, task what, int processes, bool first_holder, double limit) {
    session_.emplace(server_);
    session_->create(root, 0);
    what.directory = std::string(root).append("/").append(std::to_string(++directories_));
    session_->create(what.directory, 0);
    std::string holder;
    if (!what.peer.empty()) session_->create(what.warm_up = what.directory + "w", 0);
    if (first_holder) holder = session_->create(what.directory + "/" + new_node_name(), ZOO_EPHEMERAL_SEQUENTIAL);
    what.contenders = what.waiters * what.sessions * processes + 1;
    workers_.clear();
    deadline_ = now() + limit;
    for (int i = 0; i < processes; ++i) start(work, what);

    outcome o;
    bool fine = false;
    try {
        fine = all(message_kind::ready) && go() &&
               (holder.empty() || (all(message_kind::queued) && let_go(holder, o))) && all(message_kind::done, &o);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "  conductor: %s\n", e.what());
    }
    for (const child& c : workers_) {
        if (!fine) ::kill(c.pid, SIGKILL);
        ::close(c.fd);
        ::waitpid(c.pid, nullptr, 0);
    }
    if (!fine) {
        left_.insert(left_.end(), {what.directory, what.warm_up});  // the nodes in them go with the sessions
        return std::nullopt;
    }
    if (session_->children(what.directory) != 0) std::printf("  nodes are left in %s\n", what.directory.c_str());
    session_->remove(what.directory);
    if (!what.peer.empty()) session_->remove(what.warm_up);
    return o;
}

void conductor::start(worker work, const task& what) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) std::abort();
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(ends[1], 3);
        ::close_range(4, ~0U, 0);  // our session among them: it is not this process's
        try {
            work(what, conductor_link(3));
        } catch (const std::exception& e) {
            std::fprintf(stderr, "  worker: %s\n", e.what());
            std::_Exit(1);
        }
        std::_Exit(0);
    }
    ::close(ends[1]);
    workers_.push_back({pid, ends[0]});
}

bool conductor::all(message_kind expected, outcome* o) {
    bool first = true;
    for (const child& c : workers_) {
        while (!turn({&*session_}, c.fd, 1000))
            if (now() > deadline_) return false;
        message m;
        if (::recv(c.fd, &m, sizeof m, 0) != sizeof m || m.what != expected) return false;
        if (o) add(o->sum, m.result, std::exchange(first, false));
    }
    return true;
}

bool conductor::go() {
    for (const child& c : workers_) send(c.fd, {message_kind::go, {}});
    return true;
}

bool conductor::let_go(const std::string& holder, outcome& o) {
    o.released = now();
    session_->remove(holder);
    return true;
}

void conductor_link::ready() const {
    send(fd_, {message_kind::ready, {}});
    message go;
    if (::recv(fd_, &go, sizeof go, 0) != sizeof go) std::_Exit(1);
}
void conductor_link::queued() const { send(fd_, {message_kind::queued, {}}); }
void conductor_link::done(const report& result) const { send(fd_, {message_kind::done, result}); }

}  // namespace bench
