#pragma once

#include "simulation/sim_ensemble.hpp"

#include <zkasio/recipes/lock_guard.hpp>
#include <zkasio/recipes/lock_kind.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace zkasio::test {

/// Watches a lock from outside: what its users are told, and what happens in the tree. Throws `violation` when the two do not
/// add up. Who asks for the lock writes the id of the attempt into its node.
class witness {
public:
    witness(const sim_ensemble& ensemble, std::string directory) : ensemble_(ensemble), directory_(std::move(directory)) {}

    // ------------------------------------------------------------------------------------------- what users tell
    std::string asks(int client, lock_kind kind, bool patient = true);
    void granted(const std::string& id, const lock_guard& guard);
    /// It wants the lock no longer: cancelled, refused, failed, or about to release.
    void gives_up(const std::string& id);
    /// It was told that the release is complete.
    void released(const std::string& id) const;

    // ----------------------------------------------------------------------------------------- what the tree tells
    void committed(const sim_txn& txn);

    // -------------------------------------------------------------------------------------------------- checks
    void check() const;        ///< at any time
    void check_quiet() const;  ///< nothing is under way
    void check_end() const;    ///< everybody is done

    bool busy(int client) const;  ///< one of its contenders asks or holds
    bool all_told() const;        ///< whoever holds without a node knows it

    std::size_t grants() const noexcept { return grants_; }
    std::string nth_node(std::size_t n) const;  ///< path, in the order of the queue; "" when there are not so many
    std::size_t nodes_alive() const;
    std::size_t nodes_of(const std::string& id) const;  ///< alive

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
    };

    static bool conflict(lock_kind a, lock_kind b) { return a == lock_kind::exclusive || b == lock_kind::exclusive; }
    static bool before(const node& a, const node& b);
    static bool blocks(const node& other, const node& n);
    bool first(const node& n) const;
    bool owns(const node& n) const;
    void fence_successors(const node& owner);
    bool behind_deleted(const attempt& waiter) const;
    void check_exclusion(const std::string& id, const attempt& a) const;
    void check_order(const std::string& path, const node& n) const;

    const sim_ensemble& ensemble_;
    std::string directory_;
    std::map<std::string, attempt> attempts_;
    std::map<std::string, node> nodes_;  // by path
    std::map<std::int32_t, std::int64_t> places_;
    std::int64_t last_token_ = 0;         // of exclusive ones
    std::int64_t last_shared_token_ = 0;
    std::size_t grants_ = 0;
};

}  // namespace zkasio::test
