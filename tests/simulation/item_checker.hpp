#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/queues/delivery.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::test {

/// The directories of a work_queue.
struct queue_paths {
    std::string items, later, dead, claims, receipts;
    bool names_tell_times = false;  ///< items that are not due wait among the others
};

/// Watches the items of a work_queue, each of which has its id in its data, "<id>".
///
/// An item is put once, and is in one place at a time: later, waiting, or dead. No transaction moves an item before the
/// item is due, claims such an item, or claims an item more often than most_deliveries. An item dies only after so many
/// claims, or when its consumer has rejected it, and waits again only when it was put back. It is removed only together
/// with its claim, by the session that has claimed it, when its consumer has done it. No two consumers hold an item.
class item_checker {
public:
    /// @param most_deliveries 0: no limit.
    item_checker(const sim_ensemble& ensemble, queue_paths at, int most_deliveries)
        : ensemble_(ensemble), at_(std::move(at)), most_deliveries_(most_deliveries) {}

    static std::string data_of(const std::string& id) { return '<' + id + '>'; }
    static std::string id_in(const std::string& data);

    // -------------------------------------------------------------------------------------------- what users tell
    /// @param due by the servers' clock, in milliseconds, at the earliest.
    void puts(const std::string& id, std::int64_t due) { items_[id].due = due; }
    void was_put(const std::string& id) const;
    void was_not_put(const std::string& id);
    void revives(const std::string& id) { ++items_.at(id).revivals_begun; }
    /// @param outcome nothing: unknown.
    void revived(const std::string& id, std::optional<bool> outcome);

    /// A body that works on an item, while it exists.
    class work {
    public:
        work(item_checker& checker, const delivery& what);
        ~work() { working_->erase(at_); }
        work(const work&) = delete;
        work& operator=(const work&) = delete;

    private:
        std::shared_ptr<std::list<const delivery*>> working_;
        std::list<const delivery*>::iterator at_;
    };
    /// From now on this delivery may end with its item done, or rejected.
    void will_be_done(const delivery& d) { done_.insert(claim_of(d)); }
    void will_be_rejected(const delivery& d) { rejected_.insert(claim_of(d)); }

    // ------------------------------------------------------------------------------------------ what the tree tells
    void committed(const sim_txn& txn);
    /// Sessions that end now do so before their time.
    void sessions_are_cut_short(bool now) noexcept { cut_short_now_ = now; }

    // --------------------------------------------------------------------------------------------------- checks
    void check() const;
    void check_end() const;
    bool all_done() const;
    std::size_t deaths() const noexcept { return deaths_; }

private:
    using claim_key = std::pair<std::int64_t, std::string>;  // the claim's czxid, and the item's name
    struct item {
        std::int64_t due = 0;
        std::set<std::string> places;  // paths
        int claims = 0;                // since the item was put, or put back
        bool is_put = false, is_done = false, never = false;
        int revivals_begun = 0, revivals = 0, told_revivals = 0, unknown_revivals = 0;
    };
    struct claim {
        std::string id;
        int attempt = 0;
        std::int64_t session = 0;
    };

    static claim_key claim_of(const delivery& d) { return {d.token().value(), d.name()}; }
    bool is_place(std::string_view directory) const {
        return directory == at_.items || directory == at_.later || directory == at_.dead;
    }
    void claims_changed(const sim_txn& txn);
    void moved(const std::string& id, const std::string& from, const sim_txn& txn);
    void check_put(const std::string& id, item& i, const std::string& path, const sim_txn& txn) const;
    void check_done(const std::string& id, const std::string& path, const sim_txn& txn) const;
    void check_death(const std::string& id, const item& i, const std::string& path) const;

    const sim_ensemble& ensemble_;
    const queue_paths at_;
    const int most_deliveries_;
    std::map<std::string, item> items_;      // by id
    std::map<claim_key, claim> claims_;      // all that there were
    std::map<std::string, claim_key> held_;  // those that are there, by the path of the item
    std::set<claim_key> done_, rejected_, cut_short_;
    std::shared_ptr<std::list<const delivery*>> working_ = std::make_shared<std::list<const delivery*>>();
    std::size_t deaths_ = 0;
    bool cut_short_now_ = false;
};

}  // namespace zkasio::test
