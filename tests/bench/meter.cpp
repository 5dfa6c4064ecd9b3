#include "meter.hpp"

#include <arpa/inet.h>
#include <linux/tcp.h>  // <netinet/tcp.h> lacks tcpi_bytes_received
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace bench {
namespace {

constexpr double exists_reply = 4 + 16 + 68;  // length, header, stat

sockaddr_in address_of(const std::string& server) {
    const auto colon = server.rfind(':');
    sockaddr_in a{};
    a.sin_family = AF_INET;
    if (colon == std::string::npos || ::inet_pton(AF_INET, server.substr(0, colon).c_str(), &a.sin_addr) != 1)
        throw std::runtime_error("the server must be given as ADDRESS:PORT: " + server);
    a.sin_port = htons(static_cast<std::uint16_t>(std::atoi(server.c_str() + colon + 1)));
    return a;
}

double heap_in_use() {
    const struct mallinfo2 m = ::mallinfo2();
    return static_cast<double>(m.uordblks + m.hblkhd);
}

double number_of_threads() {
    double n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) n += entry.exists();
    return n;
}

// The server's answer to "cons": a line for each connection,
// " /127.0.0.1:40000[1](queued=0,recved=5,sent=5,sid=0x1,...)".
std::string connections(const sockaddr_in& server) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string text;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0 && ::write(fd, "cons", 4) == 4) {
        char buffer[65536];
        for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return text;
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_seconds() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
    return seconds(u.ru_utime) + seconds(u.ru_stime);
}

void latencies::write_to(report& r) {
    if (all_.empty()) return;
    std::sort(all_.begin(), all_.end());
    r.p50 = all_[all_.size() / 2];
    r.p99 = all_[all_.size() * 99 / 100];
}

meter::counts meter::count() const {
    const sockaddr_in server = address_of(server_);
    std::map<std::uint16_t, double> sockets;  // local port -> bytes; a client may have several descriptors of one socket
    for (int fd = 0; fd < 1024; ++fd) {
        sockaddr_in peer{}, local{};
        socklen_t n = sizeof peer, m = sizeof local;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &n) != 0) continue;
        if (peer.sin_family != AF_INET || peer.sin_port != server.sin_port) continue;
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &m);
        tcp_info info{};
        socklen_t length = sizeof info;
        ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
        sockets[ntohs(local.sin_port)] = static_cast<double>(info.tcpi_bytes_received);
    }
    counts c;
    const std::string text = connections(server);
    for (const auto& [port, bytes] : sockets) {
        c.bytes += bytes;
        const auto line = text.find(std::string(":").append(std::to_string(port)).append("["));
        const auto number = line == std::string::npos ? line : text.find("recved=", line);
        if (number == std::string::npos) throw std::runtime_error("the server does not answer \"cons\": see 4lw.commands.whitelist");
        c.requests += std::atof(text.c_str() + number + 7);
    }
    return c;
}

void meter::start() {
    before_ = count();
    heap_ = heap_in_use();
    cpu_ = cpu_seconds();
}

void meter::all_wait() {
    heap_all_wait_ = heap_in_use();
    threads_ = number_of_threads();
}

void meter::stop(report& result, int own_exists) {
    result.cpu = cpu_seconds() - cpu_;
    const counts after = count();
    result.requests = after.requests - before_.requests - own_exists;
    result.bytes = after.bytes - before_.bytes - own_exists * exists_reply;
    result.heap = heap_all_wait_ - heap_;
    result.threads = threads_ > 0 ? threads_ : number_of_threads();
}

}  // namespace bench
