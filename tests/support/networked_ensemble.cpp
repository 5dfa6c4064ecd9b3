#include "support/networked_ensemble.hpp"
#include "support/source_dir.hpp"

#include "support/test_server.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zkasio::test {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

// In the calling thread's namespace.
pid_t spawn(std::vector<std::string> args) {
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    if (const int failed = ::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ)) {
        errno = failed;
        fail(args[0]);
    }
    return pid;
}

void ip(const std::string& arguments) {
    std::vector<std::string> args{"ip"};
    for (std::size_t at = 0; at < arguments.size();) {
        const std::size_t end = std::min(arguments.find(' ', at), arguments.size());
        args.push_back(arguments.substr(at, end - at));
        at = end + 1;
    }
    int status = 0;
    ::waitpid(spawn(args), &status, 0);
    if (status != 0) throw std::runtime_error("ip " + arguments + ": it failed");
}

int this_network() {
    const int fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("/proc/thread-self/ns/net");
    return fd;
}

void enter(int network) {
    if (::setns(network, CLONE_NEWNET) != 0) fail("setns");
}

// The calling thread is in it afterwards.
int new_network() {
    if (::unshare(CLONE_NEWNET) != 0) fail("unshare(CLONE_NEWNET)");
    const int fd = this_network();
    ip("link set lo up");
    return fd;
}

std::string path_of(int network) { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(network); }

}  // namespace

std::string networked_ensemble::impossible() {
    if (::geteuid() != 0) return "not root";
    std::string why;
    // In a thread of its own, whose namespace ends with it.
    std::thread attempt([&why] {
        try {
            ::close(new_network());
            ip("link add name first type veth peer name second");
            ip("link add name third type bridge");
            ip("route add blackhole 10.213.9.1/32");
        } catch (const std::exception& e) {
            why = e.what();
        }
    });
    attempt.join();
    return why;
}

networked_ensemble::networked_ensemble(std::chrono::milliseconds tick) : hosts_(size), deaf_(size), mute_(size) {
    outside_ = this_network();
    try {
        hub_ = new_network();
        ip("link add name between type bridge");  // the servers among themselves; we have no address there
        ip("link set between up");
        for (int i = 0; i < size; ++i) {
            host& h = hosts_[static_cast<std::size_t>(i)];
            const std::string n = std::to_string(i);
            h.network = new_network();
            enter(hub_);
            ip("link add name clients" + n + " type veth peer name clients netns " + path_of(h.network));
            ip("link add name peers" + n + " type veth peer name peers netns " + path_of(h.network));
            ip("link set peers" + n + " master between up");
            ip("link set clients" + n + " up");
            ip("addr add 10.213." + n + ".1/30 dev clients" + n);
            enter(h.network);
            ip("link set clients up");
            ip("link set peers up");
            ip("addr add 10.213." + n + ".2/30 dev clients");
            ip("addr add " + peer_address(i) + "/24 dev peers");
        }
        ::setenv("TICK", std::to_string(tick.count()).c_str(), 1);
        for (int i = 0; i < size; ++i) {
            const std::string n = std::to_string(i);
            std::vector<std::string> args{
                "setpriv",      "--pdeathsig",        "KILL", source_dir() + "/scripts/zookeeper_server.sh",
                dir_ / n, "10.213." + n + ".2", "2181", std::to_string(i + 1)};
            for (int k = 0; k < size; ++k)
                args.push_back("server." + std::to_string(k + 1) + "=" + peer_address(k) + ":2888:3888");
            enter(hosts_[static_cast<std::size_t>(i)].network);
            hosts_[static_cast<std::size_t>(i)].server = spawn(args);
        }
        ::unsetenv("TICK");
        enter(hub_);
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (int i = 0; i < size; ++i)
            while (mode(i) != "leader" && mode(i) != "follower") {
                if (std::chrono::steady_clock::now() > give_up)
                    throw std::runtime_error("the ensemble does not get up");
                ::poll(nullptr, 0, 50);
            }
    } catch (...) {
        end();
        throw;
    }
}

networked_ensemble::~networked_ensemble() { end(); }

void networked_ensemble::end() noexcept {
    for (const host& h : hosts_) {
        if (h.server > 0) {
            ::kill(h.server, SIGKILL);
            ::waitpid(h.server, nullptr, 0);
        }
        if (h.network >= 0) ::close(h.network);
    }
    ::setns(outside_, CLONE_NEWNET);
    ::close(outside_);
    if (hub_ >= 0) ::close(hub_);
}

std::string networked_ensemble::mode(int i) const {
    const std::string answer = four_letter_command(server(i), "srvr");
    const std::size_t at = answer.find("Mode: ");
    return at == std::string::npos ? "" : answer.substr(at + 6, answer.find('\n', at) - at - 6);
}

int networked_ensemble::leader() const {
    for (int i = 0; i < size; ++i)
        if (mode(i) == "leader") return i;
    return -1;
}

// What is sent to an address with such a route is lost, also on connections that stand.
void networked_ensemble::route_between(int i, direction how, const std::string& verb) {
    for (int k = 0; k < size; ++k) {
        if (k == i) continue;
        if (how != direction::incoming) {
            enter(hosts_[static_cast<std::size_t>(i)].network);
            ip("route " + verb + " blackhole " + peer_address(k) + "/32");
        }
        if (how != direction::outgoing) {
            enter(hosts_[static_cast<std::size_t>(k)].network);
            ip("route " + verb + " blackhole " + peer_address(i) + "/32");
        }
    }
    enter(hub_);
}

void networked_ensemble::cut_off(int i, direction how) {
    route_between(i, how, "add");
    deaf_[static_cast<std::size_t>(i)] = how != direction::outgoing;
    mute_[static_cast<std::size_t>(i)] = how != direction::incoming;
}

void networked_ensemble::heal(int i) {
    const auto deaf = deaf_[static_cast<std::size_t>(i)], mute = mute_[static_cast<std::size_t>(i)];
    if (deaf || mute)
        route_between(i, deaf && mute ? direction::both : deaf ? direction::incoming : direction::outgoing, "del");
    deaf_[static_cast<std::size_t>(i)] = mute_[static_cast<std::size_t>(i)] = false;
}

}  // namespace zkasio::test
