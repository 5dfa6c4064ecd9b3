#pragma once

#include <zkasio/queues/delivery.hpp>

#include <memory>
#include <utility>

namespace zkasio::queue_detail {

/// Makes deliveries.
struct delivery_access {
    static delivery make(std::shared_ptr<item_claim> claim, std::shared_ptr<const void> open) {
        return delivery(std::move(claim), std::move(open));
    }
};

}  // namespace zkasio::queue_detail
