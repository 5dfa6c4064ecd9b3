#pragma once

#include <zkasio/types.hpp>

#include <cstdint>
#include <optional>
#include <vector>

/// Decides what the keeper of a persistent_node does about the node that it sees at the path.
namespace zkasio::membership_detail {

enum class node_step {
    create,      ///< there is no node
    new_name,    ///< the name of our sequential node is taken
    wait_until_gone,
    remove,      ///< left behind by a session that this client has given up while no server was reachable
    write_data,  ///< the node is ours, or can be taken over, and has other data than it should
    stay,        ///< the node is as it should be
};

struct node_facts {
    create_mode mode = create_mode::ephemeral;
    std::int64_t session_id = 0;
    std::int64_t created_by = 0;   ///< czxid of the node that this client has created, or written to; 0: none
    bool outcome_unknown = false;  ///< a create of this client may have been applied
    bool has_new_data = false;
    std::vector<std::int64_t> former_sessions;  ///< in which this client has kept the node before
};

/// Whether `seen` is the node that this keeper keeps, and has to remove when it leaves.
bool is_ours(const node_stat& seen, const node_facts& facts) noexcept;

node_step next_step(const std::optional<node_stat>& seen, const node_facts& facts);

}  // namespace zkasio::membership_detail
