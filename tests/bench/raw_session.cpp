#include "meter.hpp"
#include "raw_session.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>

namespace bench {
namespace {

struct answer {
    bool done = false;
    int rc = 0;
    std::string path;
    int children = 0;

    static answer& of(const void* data) { return *static_cast<answer*>(const_cast<void*>(data)); }
    static void on_string(int rc, const char* value, const void* data) {
        of(data).path = value ? value : "";
        on_void(rc, data);
    }
    static void on_stat(int rc, const Stat* stat, const void* data) {
        if (rc == ZOK) of(data).children = stat->numChildren;
        on_void(rc, data);
    }
    static void on_void(int rc, const void* data) {
        of(data).rc = rc;
        of(data).done = true;
    }
};

void require(int rc) {
    if (rc != ZOK) throw std::runtime_error(std::string("raw client: ") + zerror(rc));
}

}  // namespace

void check(int rc) {
    if (rc == ZOK) return;
    std::fprintf(stderr, "raw client: %s\n", zerror(rc));
    std::abort();
}

raw_session::raw_session(const std::string& server)
    : zh_(zookeeper_init(server.c_str(), nullptr, 10000, nullptr, nullptr, ZOO_NO_LOG_CLIENTENV)) {
    zoo_set_servers_resolution_delay(zh_, -1);
    const double deadline = now() + 10;
    while (zoo_state(zh_) != ZOO_CONNECTED_STATE && now() < deadline) turn({this}, -1, 1000);
    if (zoo_state(zh_) == ZOO_CONNECTED_STATE) return;
    zookeeper_close(zh_);
    throw std::runtime_error("no connection to " + server);
}

raw_session::~raw_session() { zookeeper_close(zh_); }

std::string raw_session::create(const std::string& path, int mode) {
    answer a;
    require(zoo_acreate(zh_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, mode, &answer::on_string, &a));
    while (!a.done) turn({this});
    if (a.rc != ZNODEEXISTS) require(a.rc);
    return a.path;
}

void raw_session::set(const std::string& path, const std::string& data) {
    answer a;
    require(zoo_aset(zh_, path.c_str(), data.data(), static_cast<int>(data.size()), -1, &answer::on_stat, &a));
    while (!a.done) turn({this});
    require(a.rc);
}

int raw_session::children(const std::string& path) {
    answer a;
    require(zoo_aexists(zh_, path.c_str(), 0, &answer::on_stat, &a));
    while (!a.done) turn({this});
    require(a.rc);
    return a.children;
}

void raw_session::remove(const std::string& path) {
    answer a;
    require(zoo_adelete(zh_, path.c_str(), -1, &answer::on_void, &a));
    while (!a.done) turn({this});
    if (a.rc != ZNONODE && a.rc != ZNOTEMPTY) require(a.rc);
}

bool turn(std::initializer_list<raw_session*> sessions, int fd, int ms) {
    std::array<pollfd, 3> polled{};
    std::size_t n = 0;
    for (raw_session* s : sessions) {
        int socket = -1, events = 0;
        timeval tv{};
        if (zookeeper_interest(s->handle(), &socket, &events, &tv) != ZOK) {
            socket = -1;
            tv = {0, 10'000};
        }
        const int limit = static_cast<int>(tv.tv_sec * 1000 + tv.tv_usec / 1000);
        ms = ms < 0 ? limit : std::min(ms, limit);
        polled[n++] = {
            socket,
            static_cast<short>(((events & ZOOKEEPER_READ) ? POLLIN : 0) | ((events & ZOOKEEPER_WRITE) ? POLLOUT : 0)),
            0};
    }
    polled[n] = {fd, POLLIN, 0};
    ::poll(polled.data(), n + 1, ms);
    std::size_t i = 0;
    for (raw_session* s : sessions) {
        const int events = polled[i++].revents;
        if (events & POLLOUT) zookeeper_process(s->handle(), ZOOKEEPER_WRITE);
        if (events & (POLLIN | POLLHUP | POLLERR))
            while (zookeeper_process(s->handle(), ZOOKEEPER_READ) == ZOK) {
            }
    }
    return polled[n].revents != 0;
}

raw_sessions::raw_sessions(std::vector<raw_session*> all) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw std::runtime_error("no epoll");
    for (raw_session* s : all) all_.push_back({s});
}

raw_sessions::~raw_sessions() { ::close(epoll_); }

void raw_sessions::turn() {
    if (now() > armed_ + 1) {  // pings, too
        for (std::size_t i = 0; i < all_.size(); ++i) arm(i);
        armed_ = now();
    }
    std::array<epoll_event, 64> ready;
    const int n = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 1000);
    for (int i = 0; i < n; ++i) {
        const epoll_event& e = ready[static_cast<std::size_t>(i)];
        zhandle_t* zh = all_[e.data.u64].session->handle();
        if (e.events & EPOLLOUT) zookeeper_process(zh, ZOOKEEPER_WRITE);
        if (e.events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            while (zookeeper_process(zh, ZOOKEEPER_READ) == ZOK) {
            }
        arm(e.data.u64);
    }
}

void raw_sessions::arm(std::size_t i) {
    member& m = all_[i];
    int socket = -1, events = 0;
    timeval tv{};
    if (zookeeper_interest(m.session->handle(), &socket, &events, &tv) != ZOK) return;
    epoll_event e{};
    e.events = ((events & ZOOKEEPER_READ) ? std::uint32_t{EPOLLIN} : 0) |
               ((events & ZOOKEEPER_WRITE) ? std::uint32_t{EPOLLOUT} : 0);
    e.data.u64 = i;
    if (socket == m.socket && e.events == m.events) return;
    ::epoll_ctl(epoll_, socket == m.socket ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &e);
    m.socket = socket;
    m.events = e.events;
}

std::string new_node_name() {
    static std::mt19937_64 random{std::random_device{}()};
    const auto a = random(), b = random();
    char text[64];
    std::snprintf(text, sizeof text, "_c_%08x-%04x-4%03x-a%03x-%012llx-lock-", static_cast<unsigned>(a),
                  static_cast<unsigned>(a >> 32) & 0xffff, static_cast<unsigned>(a >> 48) & 0xfff,
                  static_cast<unsigned>(b) & 0xfff, static_cast<unsigned long long>(b >> 16));
    return text;
}

int sequence_of(std::string_view node) {
    int number = 0;
    std::from_chars(node.data() + node.size() - 10, node.data() + node.size(), number);
    return number;
}

}  // namespace bench
