#pragma once

#include <zkasio/client.hpp>
#include <zkasio/queues/detail/awaited_item.hpp>
#include <zkasio/queues/detail/batch_limit.hpp>
#include <zkasio/queues/detail/due_clock.hpp>
#include <zkasio/queues/detail/item_claim.hpp>
#include <zkasio/queues/detail/item_list.hpp>
#include <zkasio/queues/detail/later_items.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>
#include <zkasio/watch.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::queue_detail {

/// Claims items for all consumers of one session that wait at one queue: one listing, one watch of each directory and
/// one transaction at a time, however many consumers there are. Consumers are served in the order in which they came.
/// While no item is free, only the watches are left. On the strand.
class claimer final : public session_local, public std::enable_shared_from_this<claimer> {
public:
    claimer(const session& on, spec_ptr what);

    /// The claimer of this session, made when there is none. Kept by its users.
    static std::shared_ptr<claimer> of(const session& on, const spec_ptr& what);

    void enter(awaited_item_ptr consumer);
    /// A consumer has withdrawn: without consumers and known items, the watches are given up.
    void left() noexcept;
    /// Gives a claim back when `pause` has passed, unless the session ends before.
    void return_after(std::chrono::milliseconds pause, item_claim_ptr claim);
    void session_over(std::error_code why) noexcept override;
    bool waits() noexcept override;

private:
    static constexpr std::size_t most_claims = 32;  // in one transaction

    void begin();
    static asio::awaitable<void> run(std::shared_ptr<claimer> self);
    void erase_unusable(std::vector<std::string>& names);
    asio::awaitable<void> serve();
    asio::awaitable<void> list();
    asio::awaitable<node_children> list_and_watch(std::string directory, watch& kept);
    asio::awaitable<std::vector<std::string>> only_due(std::vector<std::string> items);
    void look_again();
    void warn_of_many(std::size_t items);

    asio::awaitable<void> claim_some();
    void step_aside();
    bool is_spent(const read_item& item) const noexcept;
    asio::awaitable<void> set_aside(std::vector<read_item>& batch);
    void leave_alone(const read_item& item);
    void add_substitute(transaction& steps, const read_item& item) const;
    asio::awaitable<std::vector<read_item>> read_first(std::size_t n);
    asio::awaitable<std::optional<read_item>> read(std::string name);
    void read_ahead(std::size_t skipped, std::size_t n);
    asio::awaitable<void> try_claim(std::vector<read_item> batch);
    asio::awaitable<std::optional<error>> apply(commit_report r, transaction steps, committed& done);
    asio::awaitable<void> give_back_unknown(std::vector<read_item> batch);
    std::vector<item_claim_ptr> hand_out(std::vector<read_item> claimed, std::int64_t token);
    void leave_out(const error& why, const std::vector<read_item>& batch);

    bool has_consumers();
    awaited_item_ptr next_consumer();
    void tell_impatient_ones();
    void fail_all(const std::exception_ptr& why) noexcept;

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    const std::string id_;  // the data of claims, as kazoo's consumers write them

    std::deque<awaited_item_ptr> consumers_;
    item_list free_;
    later_items later_;
    due_clock clock_;  // of a layout whose names tell times
    std::map<std::shared_ptr<asio::steady_timer>, item_claim_ptr> pauses_;  // of return_after()
    std::map<std::string, pending_data> ahead_;  // reads of items that will be claimed next
    batch_limit limit_{most_claims};
    watch items_watch_, claims_watch_;
    bool serving_ = false, has_warned_ = false;
    bool later_has_news_ = false;  // later_.move_due() has something to do
    std::size_t claims_while_alone_ = 1'000'000;  // since another process was noticed; none was yet
    bool was_refused_ = false;     // the last claim: another consumer was ahead, and this session's server may lag
    int refusals_ = 0;  // in a row
    std::minstd_rand dice_;
    std::set<std::string> unusable_;  // items that can neither be handed out nor be moved; removed from the listings
};

}  // namespace zkasio::queue_detail
