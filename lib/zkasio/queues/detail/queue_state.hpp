#pragma once

#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/queues/delivery.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::queue_detail {

/// Throws errc::too_large.
void require_size(const queue_spec& what, const bytes& item);

/// Adds the create of an item with one value. Throws errc::too_large. @param prefix of the node's path.
void add_put(transaction& steps, const queue_spec& what, std::string prefix, bytes item);

/// So many of the items, from `first` on, as one transaction takes; at least one. @param prefix of their names.
std::size_t count_for_transaction(const std::vector<bytes>& items, std::size_t first, const queue_spec& what,
                                  std::string_view prefix);

/// Puts items in one transaction, once, when the queue has room. @param on patient.
/// *Fails with* errc::session_expired without error::outcome_unknown() if nothing was put because the session is over.
asio::awaitable<void> put_together(session on, spec_ptr what, std::vector<bytes> items, put_options how);

/// The items that no consumer has claimed, the oldest first, whatever their priorities: in the order of their sequence
/// numbers, which may wrap around. Other children are left out. Pure.
std::vector<std::string> oldest_first(const item_names& layout, std::vector<std::string> items,
                                      const std::vector<std::string>& taken);

/// How long the oldest item that waits has waited, by the servers' clocks. Nothing: none waits, or the client may not
/// write the receipt that tells the servers' time. @param on patient.
asio::awaitable<std::optional<std::chrono::milliseconds>> age_of_oldest(session on, spec_ptr what);

}  // namespace zkasio::queue_detail

/// The operations on a queue that are meant for operators. @param on a patient session, for all of them.
namespace zkasio::queue_detail {

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what);

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what);

/// Puts a dead item into the queue again, once. False: there is no such item.
asio::awaitable<bool> revive_item(session on, spec_ptr what, std::string name);

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

/// The session in which a consumer waits for items.
struct used_session {
    explicit used_session(const client& zk) : pace(toolbox(zk).make_session_pace()) {}

    std::optional<session> on;
    bool is_over = false;  // a request has said so
    session_pace pace;
};

/// Implements work_queue::receive(). @param in in the caller's frame, for a consumer that receives one item after
/// another: a body may end each session before the consumer has heard of it. Null: for one item.
asio::awaitable<delivery> receive_item(state_ptr s, std::string operation, used_session* in = nullptr);

}  // namespace zkasio::queue_detail
