#include "service.hpp"

#include "announce.hpp"
#include "demo_actions.hpp"
#include "live_page.hpp"
#include "settlement.hpp"

#include <zkasio/config/json.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/log_record.hpp>

#include <asio/bind_executor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <utility>

namespace order_server {

namespace {

using namespace std::chrono_literals;

zkasio::client_options client_options_of(const options& how, std::shared_ptr<zkasio::client_observer> observer) {
    const auto log = [name = how.name](const zkasio::log_record& r) {
        std::cerr << name + ": " + std::string(to_string(r.level())) + ": " + std::string(r.text()) + "\n";
    };
    zkasio::client_options options(how.servers);
    options.session_timeout(how.session_timeout).log(log, zkasio::log_level::warning).observer(std::move(observer));
    return options;
}

zkasio::config_options<price_list> price_options() {
    zkasio::config_options<price_list> o;
    o.default_value({{"tea", 350}, {"coffee", 280}, {"cake", 420}});
    o.validate([](const price_list& prices) {
        for (const auto& [item, price] : prices)
            if (price <= 0) return false;
        return true;
    });
    return o;
}

}  // namespace

service::service(asio::io_context& io, options how)
    : io_(io),
      how_(std::move(how)),
      zk_(io, client_options_of(how_, waits_)),
      prices_(zk_, how_.root + "/prices", price_options()),
      store_(how_.store),
      till_({zk_, how_.root + "/locks", how_.name, prices_, store_, pool_, how_.bank_time}),
      counters_(zk_),
      requests_(std::make_shared<open_requests>(io.get_executor())),
      handlers_{how_, zk_, prices_, store_, pool_, till_, counters_, *requests_,
                [this] { return announced_.load() && zk_.state() == zkasio::session_state::connected; }},
      server_(restinio::external_io_context(io), [this](auto& settings) {
          settings.address(how_.address)
              .port(how_.port)
              .request_handler(make_router())
              .connection_state_listener(requests_)
              .max_pipelined_requests(2)    // it goes on reading, and notices that a client has gone
              .ip_blocker(std::make_shared<connection_limit>(requests_, how_.connections))
              .incoming_http_msg_limits(message_limits())
              .read_next_http_message_timelimit(how_.request_time)
              .handle_request_timeout(2min)  // longer than the longest deadline
              .cleanup_func([] {});
      }) {}

std::unique_ptr<answering_router> service::make_router() {
    auto router = std::make_unique<http_router>();
    add_routes(*router, handlers_);
    add_page_routes(*router, handlers_);
    if (how_.demo) add_demo_routes(*router, handlers_);
    return std::make_unique<answering_router>(std::move(router));
}

// The page first: who has seen that this instance is there may push its buttons.
asio::awaitable<void> service::announce() {
    if (how_.demo) co_await make_page_known(zk_, how_);
    // With a name: g++ 12 destroys an aggregate in the same expression as a co_await twice.
    asio::awaitable<void> announced = keep_announced({zk_, how_, till_.counts(), *requests_, *waits_, announced_});
    co_await std::move(announced);
}

asio::awaitable<void> service::run() {
    server_.open_sync();
    std::cerr << how_.name + ": http://" + how_.address + ":" + std::to_string(how_.port) + "/\n";
    auto all = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(announce());
        tasks.spawn(run_settlement({zk_, how_.root + "/leader", how_.root + "/book", how_.name, store_, pool_,
                                    how_.settle_every}));
        co_await signals_.async_wait(asio::use_awaitable);
        announced_ = false;  // not ready any more
        tasks.cancel();
    };
    co_await zkasio::with_task_scope(all);
    server_.close_sync();  // nobody new
    co_await requests_to_end();
    co_await zk_.close();
    pool_.join();
}

asio::awaitable<void> service::requests_to_end() {
    const auto executor = co_await asio::this_coro::executor;
    const auto ended = std::make_shared<asio::steady_timer>(executor, how_.bank_time + 10s);
    requests_->cancel_all();
    requests_->when_empty([=] { asio::post(executor, [=] { ended->cancel(); }); });
    const auto all_ended = co_await zkasio::as_result(ended->async_wait(asio::use_awaitable));
    if (all_ended) std::cerr << how_.name + ": some requests have not ended\n";
}

}  // namespace order_server
