#include "request_texts.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace order_server {

namespace {

constexpr std::chrono::milliseconds longest_wait{60'000};

void require_item(std::string_view item) {
    if (!is_item(item)) throw bad_request("the name of an item has 1 to 64 bytes");
}

}  // namespace

void require_order_id(std::string_view id) {
    if (!is_order_id(id)) throw bad_request("that is no id of an order");
}

order parse_order(std::string id, std::string_view body) {
    require_order_id(id);
    const auto json = nlohmann::json::parse(body, nullptr, false);
    if (!json.is_object() || !json.contains("item") || !json["item"].is_string())
        throw bad_request(R"(an order is {"item": "tea", "quantity": 2})");
    order o;
    o.id = std::move(id);
    o.item = json["item"];
    require_item(o.item);
    const auto quantity = json.value("quantity", nlohmann::json(1));
    if (!quantity.is_number_integer() || quantity < 1 || quantity > 1'000'000)
        throw bad_request("the quantity is from 1 to 1000000");
    o.quantity = quantity;
    return o;
}

price_list parse_prices(std::string_view body) {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    const auto refuse = [] { throw bad_request(R"(prices are {"tea": 350}, in cents)"); };
    if (!json.is_object()) refuse();
    for (const auto& [item, price] : json.items()) {
        if (!price.is_number_integer() || !(price > 0)) refuse();
        require_item(item);
    }
    return json.get<price_list>();
}

std::optional<std::chrono::milliseconds> parse_deadline(std::string_view text) {
    std::int64_t number = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = failed == std::errc() && end == text.data() + text.size();
    if (!whole || number < 0 || number > longest_wait.count()) return std::nullopt;
    return std::chrono::milliseconds(number);
}

}  // namespace order_server
