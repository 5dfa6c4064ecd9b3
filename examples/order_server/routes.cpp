#include "routes.hpp"

#include "request_texts.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace order_server {

namespace {

using restinio::request_handle_t;
using restinio::router::route_params_t;

constexpr std::chrono::milliseconds usual_wait{5'000};
constexpr std::int64_t most_orders = 1'000;

nlohmann::json json_of(const order& o) {
    nlohmann::json j;
    j["id"] = o.id;
    j["item"] = o.item;
    j["quantity"] = o.quantity;
    j["state"] = to_string(o.state);
    if (o.state == order_state::open) return j;
    j["amount"] = o.amount;
    j["paid_by"] = o.paid_by;
    j["token"] = o.token;
    return j;
}

int status_of(payment_outcome o) noexcept {
    switch (o) {
        case payment_outcome::paid: return 200;
        case payment_outcome::already_paid: return 409;
        case payment_outcome::no_such_order: return 404;
        case payment_outcome::no_price: return 422;
        case payment_outcome::busy:
        case payment_outcome::fenced: break;
    }
    return 503;
}

asio::awaitable<reply> pay(handlers& with, std::string id, std::string who, std::chrono::milliseconds deadline) {
    const payment p = co_await with.till.pay(std::move(id), std::move(who), deadline);
    with.counters.count_payment(to_string(p.outcome));
    nlohmann::json body;
    body["outcome"] = to_string(p.outcome);
    if (!p.what.id.empty()) body["order"] = json_of(p.what);
    co_return reply(status_of(p.outcome), body);
}

// Together with other readers, and never between two steps of a settlement.
asio::awaitable<reply> list(handlers& with, std::string who) {
    zkasio::shared_mutex_options me;
    me.data(std::move(who));
    const zkasio::shared_mutex book(with.zk, with.how.root + "/book", me);
    const std::optional<zkasio::lock_guard> reading = co_await book.try_acquire_shared_for(usual_wait);
    if (!reading) co_return failure(503, "the orders are being settled");
    auto read = [&] { return with.store.all(most_orders); };
    const std::vector<order> orders = co_await with.pool.run(read);
    nlohmann::json body = nlohmann::json::array();
    for (const order& o : orders) body.push_back(json_of(o));
    co_return reply(200, body);
}

asio::awaitable<reply> add(handlers& with, order o) {
    auto write = [&] { return with.store.add(o); };
    const bool added = co_await with.pool.run(write);
    if (!added) co_return failure(409, "there is an order of that id");
    co_return reply(201, json_of(o));
}

asio::awaitable<reply> audit(handlers& with) {
    auto read = [&] { return with.store.audit(); };
    const order_store::books b = co_await with.pool.run(read);
    nlohmann::json body;
    body["payments"] = b.payments;
    body["paid_twice"] = b.paid_twice;
    co_return reply(200, body);
}

asio::awaitable<reply> set_prices(handlers& with, price_list prices) {
    const std::int32_t version = co_await with.prices.set(std::move(prices));
    nlohmann::json body;
    body["version"] = version;
    co_return reply(200, body);
}

// "deadline_ms=500"; nothing where it is none.
std::optional<std::chrono::milliseconds> deadline_of(const request_handle_t& r) {
    const auto query = restinio::try_parse_query<restinio::parse_query_traits::restinio_defaults>(
        r->header().query());
    if (!query) return std::nullopt;
    const auto text = query->get_param("deadline_ms");
    if (!text) return usual_wait;
    return parse_deadline(*text);
}

auto pay_route(handlers& with) {
    return [&with](request_handle_t r, route_params_t params) {
        const auto id = restinio::cast_to<std::string>(params["id"]);
        const auto deadline = deadline_of(r);
        require_order_id(id);
        if (!deadline) return send(r, failure(400, "deadline_ms is a number from 0 to 60000"));
        const auto open = with.requests.begin(r->connection_id());
        start(with, open, r, pay(with, id, with.how.name + "/" + std::to_string(open->number), *deadline));
        return restinio::request_accepted();
    };
}

auto add_route(handlers& with) {
    return [&with](request_handle_t r, route_params_t params) {
        order o = parse_order(restinio::cast_to<std::string>(params["id"]), r->body());
        start(with, with.requests.begin(r->connection_id()), r, add(with, std::move(o)));
        return restinio::request_accepted();
    };
}

auto set_prices_route(handlers& with) {
    return [&with](request_handle_t r, route_params_t) {
        price_list prices = parse_prices(r->body());
        start(with, with.requests.begin(r->connection_id()), r, set_prices(with, std::move(prices)));
        return restinio::request_accepted();
    };
}

}  // namespace

void start(handlers& with, const std::shared_ptr<open_request>& as, request_handle_t to, asio::awaitable<reply> work) {
    as->start(answer(std::move(to), std::move(work)), [&with, as] { with.requests.end(*as); });
}

void add_routes(http_router& to, handlers& with) {
    to.http_post("/orders/:id/pay", pay_route(with));
    to.http_put("/orders/:id", add_route(with));
    to.http_get("/orders", [&with](request_handle_t r, route_params_t) {
        const auto open = with.requests.begin(r->connection_id());
        start(with, open, r, list(with, with.how.name + "/" + std::to_string(open->number)));
        return restinio::request_accepted();
    });
    to.http_get("/audit", [&with](request_handle_t r, route_params_t) {
        start(with, with.requests.begin(r->connection_id()), r, audit(with));
        return restinio::request_accepted();
    });
    to.http_get("/prices", [&with](request_handle_t r, route_params_t) {
        return send(r, reply(200, nlohmann::json(*with.prices.value())));
    });
    to.http_put("/prices", set_prices_route(with));
    to.http_get("/healthz", [](request_handle_t r, route_params_t) {
        return send(r, reply(200, "text/plain", "ok\n"));
    });
    to.http_get("/readyz", [&with](request_handle_t r, route_params_t) {
        const bool ready = with.ready();
        return send(r, reply(ready ? 200 : 503, "text/plain", ready ? "ready\n" : "not ready\n"));
    });
    to.http_get("/metrics", [&with](request_handle_t r, route_params_t) {
        return send(r, reply(200, "text/plain; version=0.0.4; charset=utf-8", with.counters.text()));
    });
    to.non_matched_request_handler([](request_handle_t r) { return send(r, failure(404, "there is nothing here")); });
}

}  // namespace order_server
