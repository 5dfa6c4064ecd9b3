#pragma once

#include <zkasio/types.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

/// What the keeper of a persistent_node does about what it sees at the node's path.
namespace zkasio::membership_detail {

enum class node_step {
    create,      ///< there is none
    new_name,    ///< the name of our sequential node is taken
    wait_until_gone,
    remove,      ///< a session of this client that was given up while no server could be reached has left it behind
    write_data,  ///< it is ours, or can be taken over, and has other data than it should
    stay,        ///< it is as it should be
};

struct node_facts {
    create_mode mode = create_mode::ephemeral;
    std::int64_t session_id = 0;
    std::int64_t created_by = 0;   ///< czxid of the node that we have created, or written to; 0: none
    bool outcome_unknown = false;  ///< a create of ours may have been applied
    bool has_new_data = false;
    std::vector<std::int64_t> former_sessions;  ///< in which we have kept the node before
};

/// Whether that node is the one that we keep, and to be removed when we leave.
bool is_ours(const node_stat& seen, const node_facts& facts) noexcept;

/// How long the node lives without being written to, unless it has children; 0: it has no time to live.
std::chrono::milliseconds time_to_live(const node_stat& node) noexcept;

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts);

}  // namespace zkasio::membership_detail
