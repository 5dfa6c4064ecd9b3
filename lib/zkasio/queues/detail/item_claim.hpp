#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/session.hpp>
#include <zkasio/structure_reports.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::queue_detail {

/// An item as it was read.
struct read_item {
    std::string name, data;  // data: of the node; in an item_claim, the value in it
    std::int64_t czxid = 0;
    std::int32_t version = 0;                         // of the item's node; if the claims are counted, their number
    std::int64_t ctime = 0;                           // by the servers' clock
    std::optional<std::chrono::milliseconds> waited;  // until it was claimed
    bool is_counted = true;  // false: too large to be written again, see queue_spec::can_write_again()

    /// Of an item in an item_claim: see delivery::attempt().
    std::int32_t attempt() const noexcept { return is_counted ? version : 1; }
};

/// Adds the steps that put an item among the dead ones. The reason is cut where it is too long. @param item with the
/// data of its node.
void add_dead(transaction& steps, const queue_spec& what, const read_item& item, std::string reason);

/// A claimed item, from the transaction that has claimed it to the one that ends the claim. No transaction of an old
/// claim touches the claim of another consumer, which has the same name:
///
/// - The transaction that claims also writes the node of the claim. Other libraries create a claim and leave it at
///   version 0: with node_version as a condition, nothing removes their claims.
/// - The transaction that claims writes the node of the item, so that no two claims of this library belong to the same
///   version of the item. The claim of an item that is too large to be written again does not change that version: only
///   the czxid of the claim's node tells whose claim it is.
class item_claim final : public lock_claim, public std::enable_shared_from_this<item_claim> {
public:
    static constexpr std::int32_t node_version = 1;

    /// @param claimed with the version that the item's node has since the claim. @param token the zxid of the claim.
    static std::shared_ptr<item_claim> make(session on, spec_ptr what, receipts with, read_item claimed,
                                            std::int64_t token);
    ~item_claim() override { give_up(); }

    const read_item& item() const noexcept { return item_; }
    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return token_; }

    /// Whether the item was given back, or finished.
    bool is_over() const noexcept { return over_; }

    /// Gives the item back, in the background; does nothing when the claim is over.
    void give_up() noexcept override;
    /// *Fails with* the servers' error when they refuse the removal.
    asio::awaitable<void> gone() override;

    /// Ends the claim, with the item, and applies `also`, all together and once.
    /// *Fails with* errc::lock_lost if the claim is lost. After any other error the claim stays, and nothing has
    /// changed, unless the error says error::outcome_unknown().
    static asio::awaitable<void> finish(std::shared_ptr<item_claim> self, transaction also, std::string operation);
    /// As finish(), and moves the item to the dead items. *Fails with* errc::too_large if the item cannot be written
    /// again.
    static asio::awaitable<void> reject(std::shared_ptr<item_claim> self, std::string reason);

    /// Ends the claim, whose node stays for `pause`, or until the session ends.
    void give_up_after(std::chrono::milliseconds pause);
    /// Removes the node, in the background; the claim is over.
    void return_item() noexcept;

private:
    item_claim(session on, spec_ptr what, receipts with, read_item claimed, std::int64_t token);
    /// The removal of the claim's node.
    struct removal {
        explicit removal(one_shot_event e) : ended(std::move(e)) {}
        const one_shot_event ended;
        std::exception_ptr failed;  // written before `ended` is fired
    };
    static asio::awaitable<void> remove_claim(session on, spec_ptr what, read_item claimed, std::int64_t token);
    static asio::awaitable<void> remove_claim_and_tell(session on, spec_ptr what, read_item claimed,
                                                       std::int64_t token, std::shared_ptr<removal> told);
    bool end() noexcept { return !over_.exchange(true); }
    void report(delivery_end how) noexcept;
    [[noreturn]] void throw_lost(const std::string& operation, const std::string& why) const;

    const session on_;
    const spec_ptr what_;
    const receipts receipts_;
    const read_item item_;
    const std::string path_;  // of the item
    const std::vector<std::string> paths_;
    const std::int64_t token_;
    const session_hold hold_;
    const std::shared_ptr<removal> gone_;
    const boot_clock::time_point claimed_ = boot_clock::now();
    std::atomic<bool> over_{false}, returned_{false}, reported_{false};
};
using item_claim_ptr = std::shared_ptr<item_claim>;

}  // namespace zkasio::queue_detail
