// docs/operating.md: credentials and ACLs, numbers, and an ensemble that changes.
#include "../span_observer.hpp"
#include "guide.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/printable.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

namespace operating_page {
namespace {

// [observe]
class slow_locks final : public zkasio::client_observer {
    void lock_wait(const zkasio::lock_wait_report& w) override {
        if (w.ended - w.asked > 1s)
            std::cout << zkasio::printable(w.path) << " took long, behind " << w.queue_length << " others\n";
    }
};

void print_rates(const zkasio::client& zk) {
    const zkasio::client_stats now = zk.stats();
    for (const zkasio::operation_stats& o : now.operations)
        std::cout << o.operation << ": " << o.succeeded << ", half of them within "
                  << std::chrono::duration_cast<std::chrono::microseconds>(o.on_the_wire.quantile(0.5)).count()
                  << " us\n";
    std::cout << now.locks.granted << " locks, " << now.locks.held << " held now\n";
}

zkasio::client_options observed(std::string servers) {
    const auto log = [](const zkasio::log_record& r) { std::cerr << to_string(r.level()) << ": " << r.text() << "\n"; };
    return zkasio::client_options(servers)
        .log(log, zkasio::log_level::warning)
        .observer(std::make_shared<slow_locks>());
}
// [/observe]

// [spans]
class printed_spans final : public spans::span_observer {
    void finished(spans::span s) override {  // here: StartSpan(), SetAttribute(), End() of your tracer
        std::cout << s.name << ": " << (s.end - s.start) / 1us << " us" << (s.failed ? ", failed\n" : "\n");
    }
};
// [/spans]

// [acl]
zkasio::client_options with_credential(std::string servers, std::string password) {
    zkasio::client_options as_orders(servers);
    as_orders.auth("digest", "orders:" + password);
    as_orders.default_acl(zkasio::creator_digest_acl("orders", password));  // of all nodes that the client creates
    return as_orders;
}

asio::awaitable<void> under_our_lock(zkasio::client zk) {
    const zkasio::mutex lock(zk, "/guide/ours");  // only "orders", with that password, can queue, look or remove
    const zkasio::lock_guard guard = co_await lock.acquire();
}

// This client may do everything, and clients with the password of "dashboard" may read.
asio::awaitable<void> publish(zkasio::client zk, std::string dashboards_password) {
    zkasio::acl readable = zkasio::creator_all_acl();
    readable.emplace_back(zkasio::permission::read, zkasio::digest_user("dashboard", dashboards_password));
    zkasio::create_options how;
    how.acl(readable);
    co_await zk.create_unless_exists("/guide-state", "", how);
    co_await zk.set("/guide-state", "open");
}
// [/acl]

// [servers]
// Follows the ensemble's own list of servers, which join and leave by `reconfig`.
// @param client_addresses makes "host:port,..." of lines such as "server.1=zk1:2888:3888:participant;zk1:2181".
asio::awaitable<void> follow_ensemble(zkasio::client zk, std::string (*client_addresses)(std::string config)) {
    for (;;) {
        const auto now = co_await zk.config_and_watch();
        const std::string servers = client_addresses(now.value.data);
        if (!servers.empty()) co_await zk.set_servers(servers);
        co_await now.changes.changed();  // until close()
    }
}
// [/servers]

int configs_seen = 0;

std::string none_of_them(std::string config) {  // one server that stands alone has an empty list, or one of itself
    ++configs_seen;
    std::cout << "ensemble: " << config << "\n";
    return {};
}

asio::awaitable<void> refused(zkasio::client stranger) {
    try {
        co_await stranger.get("/guide-state");
        expect(false, "a stranger may not read");
    } catch (const zkasio::error& e) {
        expect(e.code() == zkasio::zk_errc::no_auth, "a stranger is told why");
    }
}

asio::awaitable<void> in_coroutines(zkasio::client zk, zkasio::client stranger) {
    co_await under_our_lock(zk);
    co_await publish(zk, "also secret");
    co_await refused(stranger);
    co_await stranger.add_auth("digest", "dashboard:also secret");
    const zkasio::node_data seen = co_await stranger.get("/guide-state");
    expect(seen.data == "open", "a dashboard may");
    co_await zk.remove("/guide-state");
    print_rates(zk);
    while (configs_seen == 0) co_await zk.sync();
    co_await stranger.close();
    co_await zk.close();
}

}  // namespace
}  // namespace operating_page

void guide_operating(std::string servers) {
    using namespace operating_page;
    asio::io_context io;
    const zkasio::client zk(io, with_credential(servers, "secret").observer(std::make_shared<printed_spans>()));
    const zkasio::client stranger(io, observed(servers));
    asio::co_spawn(io, follow_ensemble(zk, none_of_them), [](std::exception_ptr failed) {
        try {
            rethrow(failed);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::errc::client_closed) throw;
        }
    });
    asio::co_spawn(io, in_coroutines(zk, stranger), rethrow);
    io.run();
}
