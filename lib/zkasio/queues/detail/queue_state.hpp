#pragma once

#include <zkasio/client.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <utility>

namespace zkasio::queue_detail {

/// Makes deliveries.
struct delivery_access {
    static delivery make(std::shared_ptr<item_claim> claim, std::shared_ptr<const void> open) {
        return delivery(std::move(claim), std::move(open));
    }
};

/// What all copies of a work_queue share.
struct queue_state {
    queue_state(client c, std::string path, work_queue_options options)
        : zk(std::move(c)),
          what(std::make_shared<const queue_spec>(
              std::move(path), std::move(options.acl(toolbox(zk).completed(options.acl()))))) {}

    /// The claimer ends on the strand, wherever the last queue object is destroyed.
    ~queue_state();

    const client zk;
    const spec_ptr what;
    std::shared_ptr<claimer> kept;  // strand: of the newest session, with its receipts and what it knows of the items
};
using state_ptr = std::shared_ptr<queue_state>;

/// Throws errc::invalid_argument for the null of a queue that was moved from.
const state_ptr& queue_of(const state_ptr& state, const char* operation);

/// Implements work_queue::receive().
asio::awaitable<delivery> receive_item(state_ptr s, std::string operation);

}  // namespace zkasio::queue_detail
