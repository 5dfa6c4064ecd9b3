#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <optional>
#include <string>

namespace zkasio::test {

struct lock_under_test;

/// Watches locks from outside: what their users are told, and what happens in the tree. Throws `violation` when the two
/// do not add up. Who asks for a lock writes the id of the attempt into its nodes.
class checker {
public:
    virtual ~checker() = default;

    // ------------------------------------------------------------------------------------------- what users tell
    /// Returns the id.
    virtual std::string asks(int client, const lock_under_test& what, lock_kind kind, bool patient) = 0;
    virtual void granted(const std::string& id, const lock_guard& guard) = 0;
    /// It wants the lock no longer: cancelled, refused, failed, or about to release.
    virtual void gives_up(const std::string& id) = 0;
    /// A body has begun under its lock, which goes on whatever is lost; or has ended.
    virtual void works(const std::string&, bool) {}
    /// It was told that the release is complete.
    virtual void released(const std::string& id) const = 0;

    // ------------------------------------------------------------------------------------ what the ensemble tells
    virtual void committed(const sim_txn& txn) = 0;
    /// A watch of the client's on this node has told it.
    virtual void told_removed(int client, const std::string& path, std::int64_t czxid) = 0;

    // -------------------------------------------------------------------------------------------------- checks
    virtual void check() const = 0;        ///< at any time
    virtual void check_quiet() = 0;        ///< nothing is under way
    virtual void check_end() const = 0;    ///< everybody is done

    /// How many hold what they know to be lost.
    virtual std::size_t losses() const { return 0; }
    virtual bool busy(int client) const = 0;  ///< one of its contenders asks or holds
    /// A client that only a heartbeat would tell that a node of its is gone, and that somebody may wait for; nothing:
    /// none is left.
    virtual std::optional<int> waits_for_a_heartbeat() const { return std::nullopt; }
    virtual std::size_t nodes_alive() const = 0;
    virtual std::string nth_node(std::size_t n) const = 0;  ///< path; "" when there are not so many
};

}  // namespace zkasio::test
