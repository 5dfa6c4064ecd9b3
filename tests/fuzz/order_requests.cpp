// What the order server reads itself of a request, behind RESTinio. The first line is the order's id, the second the
// time limit, the third the origin of the page, and the rest is the body.
#include "fuzz/fuzz.hpp"

#include <order_server/origins.hpp>
#include <order_server/request_texts.hpp>

#include <nlohmann/json.hpp>

namespace {

using namespace zkasio::fuzz;
using namespace order_server;

void check_order(std::string_view id, std::string_view body) {
    order o;
    try {
        o = parse_order(std::string(id), body);
    } catch (const bad_request& e) {
        require(std::string_view(e.what()).size() < 80, "a short answer", e.what());
        return;
    }
    require(o.id == id && is_order_id(o.id), "an id is the name of a node", id);
    require(is_item(o.item) && o.quantity >= 1 && o.quantity <= 1'000'000, "an order can be delivered", body);
    require(o.state == order_state::open && o.amount == 0 && o.paid_by.empty(), "and is not paid", body);
    nlohmann::json again;
    again["item"] = o.item;
    again["quantity"] = o.quantity;
    const order same = parse_order(o.id, again.dump());
    require(same.item == o.item && same.quantity == o.quantity, "what is printed is read again", body);
}

void check_prices(std::string_view body) {
    price_list prices;
    try {
        prices = parse_prices(body);
    } catch (const bad_request&) {
        return;
    }
    for (const auto& [item, price] : prices) {
        require(is_item(item) && price > 0, "a price is one", body);
        order o;
        o.item = item;
        o.quantity = 1'000'000;
        const auto amount = amount_of(o, prices);
        require(!amount || *amount >= price, "an amount is no less than its price", body);
    }
    require(parse_prices(nlohmann::json(prices).dump()) == prices, "what is printed is read again", body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest = view(data, size);
    const std::string_view id = take_line(rest), limit = take_line(rest), origin = take_line(rest);
    check_order(id, rest);
    check_prices(rest);
    if (const auto deadline = parse_deadline(limit)) {
        require(deadline->count() >= 0 && deadline->count() <= 60'000, "a deadline is at most a minute", limit);
        require(parse_deadline(std::to_string(deadline->count())) == deadline, "and is read again", limit);
    }
    if (is_loopback_origin(origin))
        require(origin.starts_with("http://127.") || origin.starts_with("http://["), "a page of this machine", origin);
    return 0;
}
