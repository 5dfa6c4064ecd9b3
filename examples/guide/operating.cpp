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

#include <fnmatch.h>

#include <chrono>
#include <iostream>
#include <istream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace operating_page {
namespace {

// [prefer]
zkasio::client_options in_this_zone(std::string servers) {
    const auto rank = [](std::string_view name, std::string_view address) {
        return address.starts_with("127.") || name.ends_with(".zone-a.example") ? 0 : 1;
    };
    return zkasio::client_options(servers).prefer(rank);
}
// [/prefer]

// [zone-file]
// Lines of "<address pattern> <zone>", such as "10.1.* a"; '#' begins a comment. The first one that fits counts.
class zone_file {
public:
    explicit zone_file(std::istream& lines) {
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line.substr(0, line.find('#')));
            std::string pattern, zone;
            if (words >> pattern >> zone) zones_.emplace_back(std::move(pattern), std::move(zone));
        }
    }
    std::string zone_of(const std::string& address) const {
        for (const auto& [pattern, zone] : zones_)
            if (::fnmatch(pattern.c_str(), address.c_str(), 0) == 0) return zone;
        return {};
    }

private:
    std::vector<std::pair<std::string, std::string>> zones_;
};

zkasio::client_options in_zone(const std::string& own, const zone_file& zones, std::string servers) {
    const auto rank = [zones, own](std::string_view, std::string_view address) {
        return zones.zone_of(std::string(address)) == own ? 0 : 1;
    };
    return zkasio::client_options(servers).prefer(rank);
}
// [/zone-file]

// [rooted]
asio::awaitable<void> two_components(zkasio::client zk) {
    const zkasio::client orders = zk.rooted("/guide/services/orders"), bills = zk.rooted("/guide/services/bills");
    const zkasio::mutex of_orders(orders, "/lock"), of_bills(bills, "/lock");  // two locks, of one session
    const zkasio::lock_guard first = co_await of_orders.acquire();
    const zkasio::lock_guard second = co_await of_bills.acquire();
    std::cout << first.path() << '\n';  // begins with /lock/
}
// [/rooted]

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
    co_await two_components(zk);
    co_await refused(stranger);
    co_await stranger.add_auth("digest", "dashboard:also secret");
    const zkasio::node_data seen = co_await stranger.get("/guide-state");
    expect(seen.data == "open", "a dashboard may");
    co_await zk.remove("/guide-state");
    print_rates(zk);
    const zkasio::client near(zk.get_executor(), in_this_zone(zk.options().servers()).follow_ensemble());
    co_await near.connected();
    co_await near.close();
    std::istringstream lines("# the machines of each zone\n10.1.* a\n10.* b\n2001:db8:2:* b  # by IPv6\nnonsense\n");
    const zone_file zones(lines);
    for (const auto& [address, zone] : {std::pair("10.1.2.3", "a"), std::pair("10.2.0.1", "b"),
                                        std::pair("2001:db8:2:0:0:0:0:1", "b"), std::pair("192.0.2.1", "")})
        if (zones.zone_of(address) != zone) throw std::runtime_error(std::string("not the zone of ") + address);
    const zkasio::client zoned(zk.get_executor(), in_zone("a", zones, zk.options().servers()));
    co_await zoned.connected();
    co_await zoned.close();
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
    asio::co_spawn(io, in_coroutines(zk, stranger), rethrow);
    io.run();
}
