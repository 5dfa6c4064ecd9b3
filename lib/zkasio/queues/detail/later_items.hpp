#pragma once

#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/queues/detail/item_list.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zkasio::queue_detail {

/// For how long an item is left out that this client may not read, write or move (W1).
constexpr std::chrono::minutes until_tried_again(1);

/// The items of a queue that wait for a time by the servers' clocks. The first consumer, in any process, that notices
/// an item that is due moves the item to those that are handed out. Of several consumers, one does: the others'
/// transactions are refused, as the item to be removed is gone. On the strand.
class later_items {
public:
    /// @param wake called when move_due() has something to do; may be called once more after forget().
    later_items(session on, spec_ptr what, receipts with, std::function<void()> wake);

    /// *Completes when* nothing is due, as far as this session's server knows; without a request if nothing has
    /// changed. From then on `wake` is called. An item that the servers refuse to this client stays, with a warning
    /// for all of them, and is tried again after a pause.
    asio::awaitable<void> move_due();
    /// Gives the watch and the timer up.
    void forget() noexcept;

private:
    static constexpr std::size_t most_moves = 32;  // in one transaction

    asio::awaitable<void> move_all_due();
    asio::awaitable<void> list();
    asio::awaitable<bool> move_some(server_time now);
    void put_off(const error& why, std::vector<later_item> refused, server_time now);

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    const std::function<void()> wake_;

    std::vector<later_item> items_;               // the first one that is due is the last element
    std::map<std::string, server_time> put_off_;  // refused items, and when each is tried again
    refused_items refused_;
    watch watch_;
    bool is_old_ = true;
    batch_limit limit_{most_moves};
    due_clock clock_;
};

}  // namespace zkasio::queue_detail
