// What updates of one of many members cost who follows them, and how soon many members have divided partitions.
//
//     zkasio_bench_members 127.0.0.1:2181 [members] [seconds]
//
// Another session writes members' nodes: 200 a second, one at a time, and then every member once a second. "CPU us" is
// all that the following process spends for an update: the notification, the read, and what the strand does with the
// answer. So the strand's share is less. What depends on the number of members is the difference to the same with 10.
// "read": a coroutine awaits each new view, too.

#include "figure.hpp"
#include "meter.hpp"
#include "raw_session.hpp"

#include <zkasio/client.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

using asio::awaitable;
using namespace std::chrono_literals;

void rethrow(std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
}

// ------------------------------------------------------------------------------------------------- who writes
void on_created(int rc, const char*, const void* pending) {
    check(rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}
void on_set(int rc, const Stat*, const void* pending) {
    check(rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}
void on_removed(int rc, const void* pending) {
    check(rc);
    --*static_cast<int*>(const_cast<void*>(pending));
}

class members {
public:
    members(const std::string& server, std::string directory, int n) : session_(server), directory_(directory), n_(n) {
        session_.create(directory_, 0);
        session_.create(directory_ + "/s", 0);
        for (int i = 0; i < n_; ++i) start([&] {
            const std::string data = data_of(i);
            return zoo_acreate(session_.handle(), path(i).c_str(), data.data(), static_cast<int>(data.size()),
                               &ZOO_OPEN_ACL_UNSAFE, 0, &on_created, &pending_);
        });
        finish();
    }
    ~members() {
        for (int i = 0; i < n_; ++i)
            start([&] { return zoo_adelete(session_.handle(), path(i).c_str(), -1, &on_removed, &pending_); });
        finish();
        session_.remove(directory_ + "/s");
        session_.remove(directory_);
    }
    members(const members&) = delete;
    members& operator=(const members&) = delete;

    const std::string& directory() const noexcept { return directory_; }

    // Returns how many updates there were: fewer than were asked for, if the server cannot keep up.
    int update(double per_second, double seconds) {
        const double began = now();
        int made = 0;
        for (double passed = 0; passed < seconds; passed = now() - began) {
            for (const double due = passed * per_second; made < due && now() - began < seconds; ++made) start([&] {
                const std::string data = data_of(made % n_);
                return zoo_aset(session_.handle(), path(made % n_).c_str(), data.data(), static_cast<int>(data.size()),
                                -1, &on_set, &pending_);
            });
            turn({&session_}, -1, 1);
        }
        finish();
        return made;
    }

private:
    std::string path(int i) const { return directory_ + "/s/" + std::to_string(i); }
    std::string data_of(int i) {
        zkasio::service_instance is("s");
        is.id(std::to_string(i)).port(static_cast<std::uint16_t>(++changes_ % 60000 + 1));
        return is.to_json();
    }
    template <class Start>
    void start(Start request) {
        ++pending_;
        check(request());
        while (pending_ >= 500) turn({&session_}, -1, 100);
    }
    void finish() {
        while (pending_ > 0) turn({&session_}, -1, 100);
    }

    raw_session session_;
    std::string directory_;
    int n_, pending_ = 0, changes_ = 0;
};

// ------------------------------------------------------------------------------------------------- who follows
using follower = awaitable<void> (*)(zkasio::client, std::string directory, int ready, bool read);

void say_ready(int fd) {
    if (::write(fd, "r", 1) != 1) std::abort();
}
awaitable<void> rest() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}
awaitable<void> follow_provider(zkasio::client zk, std::string directory, int ready, bool read) {
    const zkasio::provider service(zk, directory, "s");
    co_await service.ready();
    zkasio::service_view seen = service.view();
    say_ready(ready);
    while (read) seen = co_await service.changed(seen);
    co_await rest();
}
awaitable<void> follow_group(zkasio::client zk, std::string directory, int ready, bool read) {
    const zkasio::group_observer group(zk, directory + "/s");
    co_await group.ready();
    say_ready(ready);
    while (read) co_await group.next();
    co_await rest();
}

class process {
public:
    process(follower work, const std::string& server, const std::string& directory, bool read) {
        int ends[2];
        if (::pipe(ends) != 0) std::abort();
        std::fflush(stdout);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            asio::io_context io(1);
            const zkasio::client zk(io.get_executor(), zkasio::client_options(server));
            asio::co_spawn(io, work(zk, directory, ends[1], read), rethrow);
            io.run();
            std::_Exit(1);
        }
        ::close(ends[1]);
        char c = 0;
        const bool ready = ::read(ends[0], &c, 1) == 1;
        ::close(ends[0]);
        if (!ready) throw std::runtime_error("the process that follows has ended");
    }
    ~process() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    // What it has spent when it has come to rest. The kernel counts in ticks of 10 ms.
    double cpu_at_rest() const {
        for (double before = -1;;) {
            const double spent = cpu_seconds(pid_);
            if (spent - before < 0.005) return spent;
            before = spent;
            ::usleep(300'000);
        }
    }

private:
    pid_t pid_ = -1;
};

void measure(const std::string& name, follower work, const std::string& server, members& all, int n, bool read,
             double seconds) {
    const process following(work, server, all.directory(), read);
    for (const int rate : {200, n}) {
        if (rate < 200) continue;
        const double before = following.cpu_at_rest(), began = now();
        const int made = all.update(rate, rate == n ? seconds : 3 * seconds);
        const double elapsed = now() - began, cpu = following.cpu_at_rest() - before;
        std::printf("  %-16s %6d updates/s: %7.1f us of CPU for an update, %5.1f %% of a core\n", name.c_str(),
                    static_cast<int>(made / elapsed), cpu * 1e6 / made, 100 * cpu / elapsed);
        const std::string row = name + (rate == n ? ", all each second | " : ", one | ");
        figure(row + "CPU us", cpu * 1e6 / made);
        figure(row + "core %", 100 * cpu / elapsed);
        figure(row + "updates/s", made / elapsed);
    }
}

// ------------------------------------------------------------------------------------------------- who divides
awaitable<void> hold(int& held, int& most, double& at) {
    ++held;
    if (held > most) most = held;
    at = now();
    struct leave {
        int& n;
        ~leave() { --n; }
    } const left{held};
    co_await rest();
}

void divide(const std::string& server, int partitions, int n) {
    asio::io_context io(1);
    std::deque<zkasio::client> clients;
    std::vector<zkasio::partitioner> all;
    std::vector<std::string> names;
    for (int i = 0; i < partitions; ++i) names.push_back(std::to_string(i));
    const std::string path = "/zbm-partitions" + std::to_string(::getpid());
    for (int i = 0; i < n; ++i) {
        clients.emplace_back(io.get_executor(), zkasio::client_options(server));
        all.emplace_back(clients.back(), path, names);
    }
    int held = 0, most = 0;
    double at = 0, began = 0;
    const auto body = [&](zkasio::held_partition&) -> awaitable<void> { co_await hold(held, most, at); };
    const auto settled = [&]() -> awaitable<double> {
        asio::steady_timer pause(io);
        for (const double limit = now() + 60; now() < limit;) {
            bool acquired = held == partitions;
            for (const zkasio::partitioner& p : all)
                acquired = acquired && (p.state() == zkasio::partitioner_state::acquired);
            if (acquired) co_return at - began;
            pause.expires_after(5ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
        throw std::runtime_error("the partitions have not settled in 60 s");
    };
    const auto run = [&]() -> awaitable<void> {
        for (const zkasio::client& zk : clients) co_await zk.connected();
        began = now();
        for (const zkasio::partitioner& p : all) asio::co_spawn(io, p.run(body), [](std::exception_ptr) {});
        const double joined = co_await settled();
        all.pop_back();
        began = now();
        co_await clients.back().close();
        const double left = co_await settled();
        const double settle = std::chrono::duration<double>(zkasio::partitioner_options().settle()).count();
        std::printf("  %d partitions, %d members: divided %.2f s after all have come, and %.2f s after one has gone; "
                    "settle %.2f s\n", partitions, n, joined, left, settle);
        figure("partitions | joined, settles", joined / settle);
        figure("partitions | left, settles", left / settle);
        for (std::size_t i = 0; i + 1 < clients.size(); ++i) co_await clients[i].close();
        const zkasio::client last(io.get_executor(), zkasio::client_options(server));
        co_await last.remove_recursive(path);
        co_await last.close();
    };
    asio::co_spawn(io, run(), rethrow);
    io.run();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [members] [seconds]\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const int n = argc > 2 ? std::atoi(argv[2]) : 10000;
    const double seconds = argc > 3 ? std::atof(argv[3]) : 5;
    {
        bench::members all(argv[1], "/zbm" + std::to_string(::getpid()), n);
        bench::measure("provider", bench::follow_provider, argv[1], all, n, false, seconds);
        bench::measure("provider, read", bench::follow_provider, argv[1], all, n, true, seconds);
        bench::measure("group", bench::follow_group, argv[1], all, n, false, seconds);
        bench::measure("group, read", bench::follow_group, argv[1], all, n, true, seconds);
    }
    {
        bench::members few(argv[1], "/zbm" + std::to_string(::getpid()), 10);
        bench::measure("provider of 10", bench::follow_provider, argv[1], few, 10, false, seconds);
        bench::measure("group of 10", bench::follow_group, argv[1], few, 10, false, seconds);
    }
    bench::divide(argv[1], 1000, 50);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
