#include "announce.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/discovery/registry.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

#include <unistd.h>

namespace order_server {

namespace {

using namespace std::chrono_literals;

std::string payload(const announced_service& what) {
    const zkasio::client_stats now = what.zk.stats();
    const lock_waits::summary waits = what.waits.take();
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    nlohmann::json j;
    j["pid"] = ::getpid();
    j["demo"] = what.how.demo;
    j["at"] = at.count();
    j["granted"] = now.locks.granted;
    j["local"] = now.locks.handed_over_locally;
    j["remote"] = now.locks.handed_over_remotely;
    j["paid"] = what.payments.paid.load();
    j["fenced"] = what.payments.fenced.load();
    j["requests"] = what.requests.size();
    j["wait_p50_ms"] = waits.half_ms;
    j["wait_p95_ms"] = waits.most_ms;
    return j.dump();
}

}  // namespace

asio::awaitable<void> keep_announced(announced_service what) {
    zkasio::service_instance me("orders");
    me.id(what.how.name).address(what.how.address).port(what.how.port).payload(payload(what));
    const zkasio::registry services(what.zk, what.how.root + "/services");
    const zkasio::announcement announced = co_await services.announce(me);
    what.announced = true;
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        pause.expires_after(1s);
        co_await pause.async_wait(asio::use_awaitable);
        me.payload(payload(what));
        const auto updated = co_await zkasio::as_result(announced.update(me));
        if (!updated && updated.error().code() != zkasio::condition::retryable) throw updated.error();
    }
}

}  // namespace order_server
