#include "order.hpp"

#include <algorithm>

namespace order_server {

std::string_view to_string(order_state s) noexcept {
    switch (s) {
        case order_state::open: return "open";
        case order_state::paid: return "paid";
        case order_state::settled: return "settled";
    }
    return "?";
}

bool is_order_id(std::string_view id) noexcept {
    const auto good = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    };
    return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), good);
}

bool is_item(std::string_view item) noexcept { return !item.empty() && item.size() <= 64; }

std::optional<cents> amount_of(const order& o, const price_list& prices) noexcept {
    const auto price = prices.find(o.item);
    cents amount = 0;
    if (price == prices.end() || __builtin_mul_overflow(price->second, o.quantity, &amount)) return std::nullopt;
    return amount;
}

}  // namespace order_server
