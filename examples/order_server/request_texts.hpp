#pragma once

#include "order.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace order_server {

/// A request that is refused; what() tells the client why.
class bad_request : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The order that is put under this id: {"item": "tea", "quantity": 2}. Throws bad_request.
order parse_order(std::string id, std::string_view body);

/// {"tea": 350}, in cents. Throws bad_request.
price_list parse_prices(std::string_view body);

/// A time limit in milliseconds; nothing for a text that is none.
std::optional<std::chrono::milliseconds> parse_deadline(std::string_view text);

/// Throws bad_request for a text that cannot be the id of an order.
void require_order_id(std::string_view id);

}  // namespace order_server
