#include "meter.hpp"

#include <arpa/inet.h>
#include <linux/tcp.h>  // <netinet/tcp.h> lacks tcpi_bytes_received
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <vector>

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

std::string proc(pid_t child, const char* what) {
    return std::string("/proc/").append(child ? std::to_string(child) : "self").append("/").append(what);
}

double resident(pid_t child) {
    std::ifstream pages(proc(child, "statm"));
    double all = 0, in_memory = 0;
    pages >> all >> in_memory;
    return in_memory * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double number_of_threads(pid_t child) {
    double n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(proc(child, "task"))) n += entry.exists();
    return n;
}

/// A child's descriptors become ours, for as long as this lives: a socket has to be asked through one.
class borrowed_descriptors {
public:
    explicit borrowed_descriptors(pid_t child) {
        if (child == 0) return;
        const auto process = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
        for (const auto& entry : std::filesystem::directory_iterator(proc(child, "fd"))) {
            const int theirs = std::atoi(entry.path().filename().c_str());
            const auto ours = static_cast<int>(::syscall(SYS_pidfd_getfd, process, theirs, 0));
            if (ours >= 0) all_.push_back(ours);
        }
        ::close(process);
    }
    borrowed_descriptors(const borrowed_descriptors&) = delete;
    borrowed_descriptors& operator=(const borrowed_descriptors&) = delete;
    ~borrowed_descriptors() {
        for (const int fd : all_) ::close(fd);
    }

    const std::vector<int>& all() const { return all_; }

private:
    std::vector<int> all_;
};

std::vector<int> own_descriptors() {
    std::vector<int> all(1024);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// The inode of the socket that listens on the port, from /proc/net/tcp or tcp6. Empty: none does.
std::string listening_inode(const char* table, std::uint16_t port) {
    constexpr const char* listens = "0A";
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // titles
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string slot, local, remote, state, skipped, inode;
        words >> slot >> local >> remote >> state;
        for (int i = 0; i < 5; ++i) words >> skipped;
        words >> inode;
        const auto colon = local.rfind(':');
        if (state == listens && std::stoul(local.substr(colon + 1), nullptr, 16) == port) return inode;
    }
    return {};
}

bool has_descriptor(const std::filesystem::path& process, const std::string& target) {
    std::error_code ignored;
    for (const auto& fd : std::filesystem::directory_iterator(process / "fd", ignored))
        if (std::filesystem::read_symlink(fd.path(), ignored) == target) return true;
    return false;
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_seconds(pid_t process) {
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    if (process != 0 && ::clock_getcpuclockid(process, &clock) != 0) throw std::runtime_error("the process has ended");
    timespec t{};
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void latencies::write_to(report& r) {
    if (all_.empty()) return;
    std::sort(all_.begin(), all_.end());
    r.p50 = all_[all_.size() / 2];
    r.p99 = all_[all_.size() * 99 / 100];
}

std::string ask_server(const std::string& server, const std::string& four_letters) {
    const sockaddr_in address = address_of(server);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string text;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::write(fd, four_letters.data(), four_letters.size()) == static_cast<ssize_t>(four_letters.size())) {
        char buffer[65536];
        for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return text;
}

double watches_at(const std::string& server) {
    const std::string text = ask_server(server, "mntr"), before = "zk_watch_count";
    const auto at = text.find(before);
    if (at == std::string::npos)
        throw std::runtime_error("the server does not answer \"mntr\": see 4lw.commands.whitelist");
    return std::atof(text.c_str() + at + before.size());
}

pid_t process_of(const std::string& server) {
    const std::uint16_t port = ntohs(address_of(server).sin_port);
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        const std::string inode = listening_inode(table, port);
        if (inode.empty()) continue;
        for (const auto& process : std::filesystem::directory_iterator("/proc"))
            if (has_descriptor(process.path(), "socket:[" + inode + "]"))
                return std::atoi(process.path().filename().c_str());
    }
    throw std::runtime_error("no process of this machine listens on " + server);
}

traffic traffic_of(const std::string& at, pid_t process) {
    const sockaddr_in server = address_of(at);
    std::map<std::uint16_t, double>
        sockets;  // local port -> bytes; a client may have several descriptors of one socket
    const borrowed_descriptors borrowed(process);
    for (const int fd : process ? borrowed.all() : own_descriptors()) {
        sockaddr_in6 peer{}, local{};  // has the port where sockaddr_in has it; Java's sockets are of this kind
        socklen_t n = sizeof peer, m = sizeof local;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &n) != 0) continue;
        if ((peer.sin6_family != AF_INET && peer.sin6_family != AF_INET6) || peer.sin6_port != server.sin_port)
            continue;
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &m);
        tcp_info info{};
        socklen_t length = sizeof info;
        ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
        sockets[ntohs(local.sin6_port)] = static_cast<double>(info.tcpi_bytes_received);
    }
    traffic c;
    // A line for each connection, " /127.0.0.1:40000[1](queued=0,recved=5,sent=5,sid=0x1,...)".
    const std::string text = ask_server(at, "cons");
    for (const auto& [port, bytes] : sockets) {
        c.bytes += bytes;
        const auto line = text.find(std::string(":").append(std::to_string(port)).append("["));
        const auto number = line == std::string::npos ? line : text.find("recved=", line);
        if (number == std::string::npos)
            throw std::runtime_error("the server does not answer \"cons\": see 4lw.commands.whitelist");
        c.requests += std::atof(text.c_str() + number + 7);
    }
    return c;
}

double meter::memory() const { return child_ ? resident(child_) : heap_in_use(); }

void meter::start() {
    before_ = traffic_of(server_, child_);
    heap_ = memory();
    cpu_ = cpu_seconds(child_);
}

void meter::all_wait() {
    heap_all_wait_ = memory();
    threads_ = number_of_threads(child_);
}

void meter::stop(report& result, int own_exists) {
    result.cpu = cpu_seconds(child_) - cpu_;
    const traffic after = traffic_of(server_, child_);
    result.requests = after.requests - before_.requests - own_exists;
    result.bytes = after.bytes - before_.bytes - own_exists * exists_reply;
    result.heap = heap_all_wait_ - heap_;
    result.threads = threads_ > 0 ? threads_ : number_of_threads(child_);
}

}  // namespace bench
