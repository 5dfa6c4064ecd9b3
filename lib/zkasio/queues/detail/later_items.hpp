#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/queues/detail/batch_limit.hpp>
#include <zkasio/queues/detail/item_names.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::queue_detail {

/// The time by the servers' clocks. Asks until there is an answer. @param on patient. @param with receipts of `on`.
asio::awaitable<server_time> ask_servers_time(session on, receipts with, std::string operation);

/// The items of a queue that wait for a time by the servers' clocks. Whichever consumer notices first moves an item
/// that is due to the others: the removal is a condition of the transaction, so that each item is moved once. On the
/// strand.
class later_items {
public:
    /// @param wake called when move_due() has something to do; may be called once more after forget().
    later_items(session on, spec_ptr what, receipts with, std::function<void()> wake);

    /// *Completes when* nothing is due, as far as this session's server knows; without a request if nothing has
    /// changed. From then on `wake` is called.
    asio::awaitable<void> move_due();
    /// Gives the watch and the timer up.
    void forget() noexcept;

private:
    static constexpr std::size_t most_moves = 32;  // in one transaction

    asio::awaitable<void> list();
    asio::awaitable<bool> move_some(server_time now);
    std::optional<server_time> now() const;
    void set_timer(server_time now);

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    const std::function<void()> wake_;

    std::vector<later_item> items_;  // the first one that is due is the last element
    watch watch_;
    bool is_old_ = true;
    batch_limit limit_{most_moves};
    std::shared_ptr<asio::steady_timer> timer_;
    std::optional<server_time> asked_;  // a time that the servers' clock has shown, and when it was certain to be past
    boot_clock::time_point asked_at_;
};

}  // namespace zkasio::queue_detail
