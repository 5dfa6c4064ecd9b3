#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace order_server {

using cents = std::int64_t;
using price_list = std::map<std::string, cents>;  ///< what one piece of an item costs

enum class order_state { open, paid, settled };
std::string_view to_string(order_state s) noexcept;

struct order {
    std::string id, item;
    std::int64_t quantity = 0;
    order_state state = order_state::open;
    cents amount = 0;      ///< paid
    std::string paid_by;   ///< which instance has taken the payment
    std::int64_t token = 0;  ///< with which fencing token
};

/// Whether a text may be the id of an order: it becomes the name of a node.
bool is_order_id(std::string_view id) noexcept;
/// Whether a text may be the name of an item: it has 1 to 64 bytes.
bool is_item(std::string_view item) noexcept;

/// What an order costs at these prices; nothing when its item has none, or the amount is too large.
std::optional<cents> amount_of(const order& o, const price_list& prices) noexcept;

}  // namespace order_server
