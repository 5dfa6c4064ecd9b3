#include "relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

constexpr std::int32_t add_watch = 106, unimplemented = -6;

std::int32_t number_at(const std::string& bytes, std::size_t at) {
    std::uint32_t v = 0;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return static_cast<std::int32_t>(ntohl(v));
}

void append(std::string& to, std::int32_t number) {
    const std::uint32_t v = htonl(static_cast<std::uint32_t>(number));
    to.append(reinterpret_cast<const char*>(&v), sizeof v);
}

int connect_to(const sockaddr_in& server) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0) return fd;
    ::close(fd);
    return -1;
}

// False: the connection has ended.
bool read_some(int fd, std::string& to) {
    char some[65536];
    const ssize_t n = ::recv(fd, some, sizeof some, MSG_DONTWAIT);
    if (n > 0) to.append(some, static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}
bool write_some(int fd, std::string& what) {
    const ssize_t n = ::send(fd, what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) what.erase(0, static_cast<std::size_t>(n));
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

class pair {
public:
    pair(int client, int server, bool looks) : client_(client), server_(server), looks_(looks) {}
    ~pair() {
        const linger reset{1, 0};
        ::setsockopt(client_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        ::close(client_);
        ::close(server_);
    }
    pair(const pair&) = delete;
    pair& operator=(const pair&) = delete;

    pollfd client() const { return {client_, events(to_server_, to_client_), 0}; }
    pollfd server() const { return {server_, events(to_client_, to_server_), 0}; }

    // False: over.
    bool go_on(short of_client, short of_server) {
        bool goes_on = true;
        if (of_client & (POLLIN | POLLHUP | POLLERR)) goes_on = read_some(client_, looks_ ? seen_ : to_server_);
        if (looks_ && !look()) return false;
        if (of_server & (POLLIN | POLLHUP | POLLERR)) goes_on = read_some(server_, to_client_) && goes_on;
        goes_on = (to_server_.empty() || write_some(server_, to_server_)) && goes_on;
        return (to_client_.empty() || write_some(client_, to_client_)) && goes_on;
    }

private:
    // Reads no more from one side than the other one takes.
    static short events(const std::string& from_here, const std::string& to_here) {
        constexpr std::size_t enough = 1 << 20;
        return static_cast<short>((from_here.size() < enough ? POLLIN : 0) | (to_here.empty() ? 0 : POLLOUT));
    }

    // Passes whole frames on. False: one was refused, and the client was told.
    bool look() {
        while (seen_.size() >= 4) {
            const std::size_t whole = 4 + static_cast<std::uint32_t>(number_at(seen_, 0));
            if (seen_.size() < whole) break;
            if (began_ && whole >= 12 && number_at(seen_, 8) == add_watch) {
                std::string refusal;
                for (const std::int32_t word : {16, number_at(seen_, 4), 0, 0, unimplemented}) append(refusal, word);
                write_some(client_, refusal);
                ::shutdown(client_, SHUT_WR);
                ::usleep(20'000);  // a reset would take the refusal away
                return false;
            }
            began_ = true;  // the first frame has no number
            to_server_.append(seen_, 0, whole);
            seen_.erase(0, whole);
        }
        return true;
    }

    int client_, server_;
    bool looks_, began_ = false;
    std::string seen_, to_server_, to_client_;
};

[[noreturn]] void lead(int listener, int line, const sockaddr_in& server, bool looks) {
    std::list<pair> all;
    bool refuses = false;
    for (;;) {
        std::vector<pollfd> polled{{listener, POLLIN, 0}, {line, POLLIN, 0}};
        for (const pair& p : all) polled.insert(polled.end(), {p.client(), p.server()});
        if (::poll(polled.data(), polled.size(), -1) < 0) continue;
        std::size_t i = 2;
        for (auto p = all.begin(); p != all.end(); i += 2)
            p = p->go_on(polled[i].revents, polled[i + 1].revents) ? std::next(p) : all.erase(p);
        if (polled[1].revents != 0) {
            char what = 0;
            if (::read(line, &what, 1) != 1) std::_Exit(0);
            if (what == 'c') all.clear();
            else refuses = what == 'r';
            if (::write(line, &what, 1) != 1) std::_Exit(0);
        }
        if (polled[0].revents == 0) continue;
        const int client = ::accept(listener, nullptr, nullptr), upstream = refuses ? -1 : connect_to(server), on = 1;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (upstream >= 0) all.emplace_back(client, upstream, looks);
        else ::close(client);
    }
}

}  // namespace

relay::relay(const std::string& server, knows what) {
    const auto colon = server.rfind(':');
    sockaddr_in to{}, here{};
    to.sin_family = here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(server.c_str() + colon + 1)));
    if (colon == std::string::npos || ::inet_pton(AF_INET, server.substr(0, colon).c_str(), &to.sin_addr) != 1)
        throw std::runtime_error("the server must be given as ADDRESS:PORT: " + server);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof here;
    int ends[2];
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::listen(listener, 1000) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &length) != 0 ||
        ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::runtime_error("no relay could be started");
    address_ = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int mine[] = {::dup2(listener, 1000), ::dup2(ends[1], 1001)};
        ::close_range(3, 999, 0);
        ::close_range(1002, ~0U, 0);
        lead(mine[0], mine[1], to, what == knows::no_one_watch);
    }
    ::close(listener);
    ::close(ends[1]);
    line_ = ends[0];
}

relay::~relay() {
    ::close(line_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void relay::cut() { tell('c'); }
void relay::refuse(bool on) { tell(on ? 'r' : 'a'); }

void relay::tell(char what) {
    if (::write(line_, &what, 1) != 1 || ::read(line_, &what, 1) != 1) throw std::runtime_error("a relay has ended");
}

}  // namespace bench
