// Many instances of a service, and many updates of them: what an update costs the process that follows all.
//
//     zkasio_bench_members 127.0.0.1:2181 [instances, 10000]
//
// Another process writes each instance once, as fast as a fifth of the server takes it, and again all within a second.

#include "meter.hpp"
#include "raw_session.hpp"
#include "verdict.hpp"

#include <zkasio/client.hpp>
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace bench {
namespace {

const std::string root = "/bench-members";

std::string path_of(int i) { return root + "/s/" + std::to_string(i); }

std::string json_of(int i, int version) {
    zkasio::service_instance is("s");
    is.id(std::to_string(i)).address("10.0.0.1").port(static_cast<std::uint16_t>(1 + version));
    return is.to_json();
}

int pending = 0;
void created(int rc, const char*, const void*) {
    check(rc);
    --pending;
}
void written(int rc, const Stat*, const void*) {
    check(rc);
    --pending;
}
void removed(int rc, const void*) {
    check(rc);
    --pending;
}

// All instances, `rate` a second.
template <class Start>
void each(raw_session& on, int instances, double rate, Start start) {
    const double begin = now();
    for (int i = 0; i < instances; ++i) {
        ++pending;
        check(start(i));
        while (pending >= 200 || now() < begin + i / rate) turn({&on}, -1, pending > 0 ? 1 : 0);
    }
    while (pending > 0) turn({&on});
}

// The last written of all instances has the new port, and the provider sees it.
asio::awaitable<void> until_seen(const zkasio::provider& service, int instances, int version) {
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        int seen = 0;
        for (const auto& is : service.view().instances()) seen += is->port() == 1 + version;
        if (seen == instances) co_return;
        pause.expires_after(std::chrono::milliseconds(100));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

void run(const std::string& server, int instances) {
    int go[2];
    if (pipe(go)) std::abort();
    const pid_t writer = fork();
    if (writer == 0) {
        raw_session on(server);
        for (;;) {
            int version = 0;
            if (read(go[0], &version, sizeof version) != sizeof version) _exit(0);
            each(on, instances, version == 1 ? 4000 : instances, [&](int i) {
                const std::string json = json_of(i, version);
                return zoo_aset(on.handle(), path_of(i).c_str(), json.data(), static_cast<int>(json.size()), -1,
                                &written, nullptr);
            });
        }
    }
    close(go[0]);
    raw_session on(server);
    on.create(root, 0);
    on.create(root + "/s", 0);
    each(on, instances, 1e9, [&](int i) {
        const std::string json = json_of(i, 0);
        return zoo_acreate(on.handle(), path_of(i).c_str(), json.data(), static_cast<int>(json.size()),
                           &ZOO_OPEN_ACL_UNSAFE, 0, &created, nullptr);
    });
    asio::io_context io(1);
    const zkasio::client zk(io, zkasio::client_options(server));
    const auto steps = [&]() -> asio::awaitable<void> {
        const zkasio::provider service(zk, root, "s");
        co_await service.ready();
        for (const int version : {1, 2, 3, 4}) {
            const double begin = now(), cpu = cpu_seconds();
            if (write(go[1], &version, sizeof version) != sizeof version) std::abort();
            co_await until_seen(service, instances, version);
            const double took = now() - begin, used = cpu_seconds() - cpu;
            std::printf("  %d updates in %.2f s: cpu %.3f s\n", instances, took, used);
            if (version == 1) ratio("members_cpu_us_per_update", used * 1e6 / instances, limit::at_most, 50);
            if (version == 4) ratio("members_all_in_a_second_cpu_s", used, limit::at_most, 0.3);
        }
        co_await service.close();
        co_await zk.close();
    };
    std::exception_ptr failed;
    asio::co_spawn(io, steps(), [&](std::exception_ptr e) { failed = e; });
    io.run();
    close(go[1]);
    waitpid(writer, nullptr, 0);
    each(on, instances, 1e9,
         [&](int i) { return zoo_adelete(on.handle(), path_of(i).c_str(), -1, &removed, nullptr); });
    on.remove(root + "/s");
    on.remove(root);
    if (failed) std::rethrow_exception(failed);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
    if (argc < 2) return std::fprintf(stderr, "usage: %s HOST:PORT [instances]\n", *argv), 2;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 10000);
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
