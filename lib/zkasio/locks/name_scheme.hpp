#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <vector>

namespace zkasio {

/// The naming of a lock's nodes, so that programs in other languages can share the lock. All programs that share a lock
/// must use the same scheme: a directory with a child that the scheme does not know is refused (errc::foreign_child).
class ZKASIO_EXPORT name_scheme {
public:
    /// Apache Curator's and go-zk's, the default. A mutex: `_c_<uuid>-lock-<sequence>`; readers and writers:
    /// `_c_<uuid>-__READ__<sequence>` and `_c_<uuid>-__WRIT__<sequence>`.
    static name_scheme curator();

    /// The names of Curator's LeaderLatch: `_c_<uuid>-latch-<sequence>`. The default of leader_election. There are no
    /// readers.
    static name_scheme curator_latch();

    /// kazoo's: `<32 hex digits>__lock__<sequence>`; readers: `__rlock__`. (kazoo sees Curator's names too, when it is
    /// given `extra_lock_patterns=["-lock-"]`.) Up to 2.8, kazoo's ReadLock also waits for writers behind it
    /// (kazoo#649): if such a writer is a zkasio contender, both wait until one gives up. kazoo ensures only once that
    /// a lock's directory exists, so zkasio creates a persistent directory, not a container.
    static name_scheme kazoo();

    /// Your own: `<prefix><uuid><marker><sequence>`.
    /// Throws errc::invalid_argument when the markers cannot be told apart, or cannot be part of a node's name.
    /// @param exclusive the marker of a mutex, and of a writer. @param shared the marker of a reader; may be empty if
    /// there are none.
    static name_scheme custom(std::string prefix, std::string exclusive, std::string shared = {});

    /// The nodes of programs that write no id: all names that end in `<marker><sequence>`. "n_", of ZooKeeper's recipe
    /// for elections; "lock-"; "json.info_", of Mesos' masters; "-", of ZooKeeper's WriteLock (`x-<session>-<number>`).
    ///
    /// Such a scheme looks: contenders() and candidates() of a lock or election, leader_election::observe(),
    /// leader_observer, list_lock(), first_of(). To contend is refused with errc::invalid_argument: acquire(),
    /// campaign(), lead() and their like. Use custom() with the same marker for that: a zkasio contender with an id
    /// waits behind nodes without one, and programs that order any names with this marker by their numbers wait behind
    /// it. Not all do: some versions of WriteLock order by prefix, and Mesos looks at the whole label. Without an id,
    /// * after a lost answer, a node of this client's could not be told from that of a process whose session it has
    ///   resumed (client_options::resume()): both would hold the lock;
    /// * names recur after the directory was removed and re-created. A release, which goes by the name, could remove
    ///   the node of another holder, and a heartbeat would take that node for this client's own.
    ///
    /// Throws as custom(). @param shared the marker of readers; may be empty if there are none.
    static name_scheme plain(std::string exclusive, std::string shared = {});

    /// The same scheme for a directory that other nodes share, as Mesos' `log_replicas`: children that the scheme does
    /// not know are passed over instead of being refused. Danger: so is a contender that another scheme has named, and
    /// then two may hold the lock. All locks of a client that name the directory should agree in this: the first one
    /// that is used in a session decides.
    name_scheme allow_foreign_children() const;

    // ------------------------------------------------------------------------------------ for writers of recipes

    /// The child that holds the mutex of this directory, that is, the first in sequence; "" when there are none. Throws
    /// errc::foreign_child, naming the child, when a child is no contender for a mutex, unless these are allowed.
    /// @param directory for the message.
    std::string first_of(const std::vector<std::string>& children, const std::string& directory) const;

    const std::string& prefix() const noexcept { return prefix_; }
    const std::string& separator() const noexcept { return separator_; }
    const std::string& mutex_marker() const noexcept { return mutex_; }
    const std::string& write_marker() const noexcept { return write_; }
    const std::string& read_marker() const noexcept { return read_; }
    bool dashes() const noexcept { return dashes_; }  ///< in the uuid
    bool directory_stays() const noexcept { return directory_stays_; }  ///< also when it is not used for a while
    bool has_id() const noexcept { return has_id_; }  ///< false: plain(), whose nodes zkasio does not create
    bool foreign_children_allowed() const noexcept { return foreign_children_allowed_; }

private:
    name_scheme(std::string prefix, bool dashes, std::string separator, std::string mutex, std::string write,
                std::string read, bool directory_stays = false);

    std::string prefix_;
    bool dashes_;
    std::string separator_;
    std::string mutex_, write_, read_;
    bool directory_stays_;
    bool has_id_ = true, foreign_children_allowed_ = false;
};

}  // namespace zkasio
