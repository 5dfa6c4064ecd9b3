// How long nobody is granted a lock when servers fail.
//
//     zkasio_bench_failover [rounds]
//
// Starts three servers of its own. "leader": two clients take and release one lock in turns while the ensemble's own
// leader is killed. Shown is the time from the kill until the first grant after it, beside the time until a session of
// the bare library, connected to a server that stays, has written: the servers' election. "ensemble": all servers are
// away for 7/5 of the session timeout, while one client holds the lock and another one waits. Shown is the time from
// the moment when that bare session has written until one of the two is granted the lock.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"

#include <zkasio/client.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/ensemble.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

namespace bench {
namespace {

using asio::awaitable;
using namespace std::chrono_literals;

constexpr double session_timeout_s = 5;

void rethrow(std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
}

// Clients that take and release a lock in turns, on a thread of their own.
class lock_users {
public:
    lock_users(const std::string& servers, std::string path) : servers_(servers), path_(std::move(path)) {
        for (zkasio::client* zk : {&one_, &two_}) asio::co_spawn(io_, use(*zk), rethrow);
        thread_ = std::thread([this] { io_.run(); });
        first_grant_after(now());
    }
    ~lock_users() {
        over_ = true;
        thread_.join();
    }

    /// From now on the first grant after `t` is noted; see first_grant().
    void note_grant_after(double t) {
        first_ = 0;
        after_ = t;
    }
    double first_grant() const {
        while (first_.load() == 0) std::this_thread::sleep_for(1ms);
        return first_.load();
    }
    double first_grant_after(double t) {
        note_grant_after(t);
        return first_grant();
    }
    void keep(bool k) { keep_ = k; }  // whoever holds the lock goes on to hold it, until he has lost it

private:
    zkasio::client_options options() const {
        return zkasio::client_options(servers_).session_timeout(
            std::chrono::milliseconds(static_cast<int>(session_timeout_s * 1000)));
    }
    awaitable<void> use(zkasio::client& zk) {
        const zkasio::mutex lock(zk, path_);
        asio::steady_timer pause(io_);
        while (!over_) {
            try {
                const zkasio::lock_guard guard = co_await lock.acquire();
                double none = 0;
                if (const double at = now(); at > after_.load()) first_.compare_exchange_strong(none, at);
                do {
                    pause.expires_after(5ms);
                    co_await pause.async_wait(asio::use_awaitable);
                } while (keep_ && guard.held() && !over_);
            } catch (const zkasio::error&) {
            }
        }
        if (++ended_ < 2) co_return;
        co_await one_.close();
        co_await two_.close();
    }

    asio::io_context io_{1};
    std::string servers_, path_;
    zkasio::client one_{io_.get_executor(), options()}, two_{io_.get_executor(), options()};
    std::atomic<double> after_{0}, first_{0};
    std::atomic<bool> over_{false}, keep_{false};
    int ended_ = 0;
    std::thread thread_;
};

// A session that writes again and again until it is done.
class writer {
public:
    explicit writer(const std::string& server) : session_(server) { session_.create("/failover-written", 0); }
    double until_written() {
        bool written = false;
        while (!written) {
            zoo_set_debug_level(static_cast<ZooLogLevel>(0));  // silent; zkasio's clients have asked for more
            ended_ = false;
            if (zoo_aset(session_.handle(), "/failover-written", "", 0, -1, &on_set, this) == ZOK)
                while (!ended_) turn({&session_}, -1, 2);
            else turn({&session_}, -1, 2);
            written = ended_ && rc_ == ZOK;
        }
        return now();
    }

private:
    static void on_set(int rc, const Stat*, const void* data) {
        auto& self = *static_cast<writer*>(const_cast<void*>(data));
        self.rc_ = rc;
        self.ended_ = true;
    }
    raw_session session_;
    bool ended_ = false;
    int rc_ = 0;
};

void kill_leader(zkasio::testing::ensemble& servers) {
    const int leader = servers.wait_for_leader();
    lock_users users(servers.connect_string(), "/failover-lock");
    writer raw(servers.endpoint((leader + 1) % servers.size()));
    servers.kill(leader);
    const double killed = now();
    users.note_grant_after(killed + 0.02);  // answers of the leader that were under way are no grants of the next one
    const double written = raw.until_written() - killed;
    const double granted = users.first_grant() - killed;
    std::printf("  leader    the servers write after %5.2f s, the lock is granted after %5.2f s\n", written, granted);
    figure("leader | servers s", written);
    figure("leader | lock s", granted);
    servers.start(leader);
}

void all_away(zkasio::testing::ensemble& servers) {
    lock_users users(servers.connect_string(), "/failover-lock");
    users.keep(true);
    std::this_thread::sleep_for(100ms);
    const double killed = now();
    for (int i = 0; i < servers.size(); ++i) servers.kill(i);
    std::this_thread::sleep_for(std::chrono::duration<double>(session_timeout_s * 7 / 5));
    users.note_grant_after(now());
    double written = 0;
    std::thread raw([&] {
        while (written == 0) {
            try {
                written = writer(servers.connect_string()).until_written();
            } catch (const std::exception&) {  // no server yet
            }
        }
    });
    for (int i = 0; i < servers.size(); ++i) servers.start(i);
    raw.join();
    const double granted = users.first_grant();
    std::printf("  ensemble  away for %5.2f s; the lock is granted %5.2f s after that\n", written - killed,
                granted - written);
    figure("ensemble | away s", written - killed);
    figure("ensemble | lock s", granted - written);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    zkasio::testing::ensemble servers(3);
    for (int round = 0; round < rounds; ++round) {
        bench::kill_leader(servers);
        bench::all_away(servers);
    }
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
