#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/locks/name_scheme.hpp>

#include <string>
#include <utility>

namespace zkasio {

/// The options that all candidates of one leader_election object share.
class leader_election_options {
public:
    leader_election_options() {}
    /// Written into the candidate's node, for observers, operators and candidates() to read: for example a host name.
    /// Curator also calls it id, and takes it for UTF-8. Observers see what a leader proclaims instead.
    leader_election_options& id(bytes i) { id_ = std::move(i).take(); return *this; }
    /// The ACL of the candidate's node and of directories created for it (client_options::default_acl()). It must let
    /// this client read and remove the node, and the other candidates read it. Observers that may not read the node
    /// know who leads, but not the leader's data. Of the directory, it must let candidates list, create and remove
    /// nodes, and, for leadership::proclaim(), write it.
    leader_election_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// How the nodes are named: by default as Curator's LeaderLatch does. name_scheme::curator() shares the election
    /// with Curator's LeaderSelector, name_scheme::kazoo() with kazoo's Election.
    leader_election_options& names(name_scheme n) { names_ = std::move(n); return *this; }

    const std::string& id() const noexcept { return id_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    const name_scheme& names() const noexcept { return names_; }

private:
    std::string id_;
    zkasio::acl acl_ = default_acl();
    name_scheme names_ = name_scheme::curator_latch();
};

}  // namespace zkasio
