#pragma once

#include "simulation/checker.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace zkasio::test {

/// Watches one lock that has a queue: also that nobody overtakes anybody, and that a node that was deleted while it
/// waited never makes an owner.
class queue_checker final : public checker {
public:
    queue_checker(const sim_ensemble& ensemble, std::string directory)
        : ensemble_(ensemble), directory_(std::move(directory)) {}

    std::string asks(int client, const lock_under_test& what, lock_kind kind, bool patient) override;
    void granted(const std::string& id, const lock_guard& guard) override;
    void gives_up(const std::string& id) override;
    void released(const std::string& id) const override;

    void committed(const sim_txn& txn) override;
    void told_removed(int client, const std::string& path, std::int64_t czxid) override;

    void check() const override;
    void check_quiet() override;
    void check_end() const override;
    std::size_t losses() const override;
    bool busy(int client) const override;
    std::string nth_node(std::size_t n) const override;  ///< in the order of the queue
    std::size_t nodes_alive() const override;

    bool all_told() const;  ///< whoever holds without a node knows it
    std::size_t grants() const noexcept { return grants_; }

private:
    struct attempt {
        enum class state {
            asking,
            holding,
            gone,
        };
        int client = 0;
        bool patient = true;
        lock_kind kind = lock_kind::exclusive;
        state now = state::asking;
        const lock_guard* guard = nullptr;
        std::string path;
        bool has_lost() const { return now == state::holding && guard->reason() != loss_reason::none; }
    };
    struct node {
        std::string attempt;
        lock_kind kind = lock_kind::exclusive;
        std::int64_t owner = 0;
        std::int64_t czxid = 0;
        std::int64_t place = 0;  // the czxid of the first with this number
        bool alive = true;
        bool deleted = false;  // by an operator, while it waited
        bool fenced = false;   // by the end of its session; or by an operator, while nobody stood before it
        bool told = false;     // its client knows that it is gone
        std::string passed_by;  // by this attempt of its session, while its own one was asking
    };

    static bool conflict(lock_kind a, lock_kind b) { return a == lock_kind::exclusive || b == lock_kind::exclusive; }
    static bool before(const node& a, const node& b);
    static bool blocks(const node& other, const node& n);
    bool first(const node& n) const;
    bool owns(const node& n) const;
    void fence_successors(const node& owner);
    void fence_behind_lost_owner(const node& successor);
    bool behind_deleted(const attempt& waiter) const;
    void check_exclusion(const std::string& id, const attempt& a) const;
    void check_order(const std::string& path, const node& n);

    const sim_ensemble& ensemble_;
    std::string directory_;
    std::map<std::string, attempt> attempts_;
    std::map<std::string, const attempt*> holding_;  // those whose state is that
    std::map<std::string, node> nodes_;  // by path
    std::map<std::int32_t, std::int64_t> places_;
    std::int64_t last_token_ = 0;         // of exclusive ones
    std::int64_t last_shared_token_ = 0;
    std::size_t grants_ = 0;
};

}  // namespace zkasio::test
