#pragma once

#include <zkasio/bytes.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/work_queue_options.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <string>
#include <string_view>
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

}  // namespace zkasio::queue_detail
