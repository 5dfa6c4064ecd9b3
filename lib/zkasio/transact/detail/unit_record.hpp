#pragma once

#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transact/transact.hpp>
#include <zkasio/transaction.hpp>
#include <zkasio/types.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::transact_detail {

/// A node as a body sees it; nothing: there is no node.
using seen_node = std::optional<node_data>;

/// What one run of a body has read and written, and the transaction that this becomes. Pure.
///
/// The transaction has a condition for each node that was read: the version of a node that was there; of one that was
/// missing, that it can be created. A condition is part of the first write to its node where that write says the same:
/// set(version), remove(version), create. All other conditions come first: check(version); create, and remove again.
/// The writes follow in the order of their calls.
class unit_record {
public:
    /// The node as the body has written or read it. Null: neither, so the node has to be read.
    const seen_node* view(const std::string& path) const;

    /// Notes what a server has answered, unless the body has written or read the node while the answer was under way.
    /// Returns what the body sees. Throws std::errc::result_out_of_range for a negative version, which no condition can
    /// name.
    const seen_node& note_read(const std::string& path, seen_node found);

    bool has_read(const std::string& path) const;
    /// Whether all nodes that were read are missing.
    bool saw_nothing() const;
    /// Notes that a server knows no such node, also if the body has written the node before: the absence becomes a
    /// condition, and the write a contradiction unless it creates the node.
    void note_missing(const std::string& path);

    /// A write that contradicts what the body has read or written is not recorded: see contradiction().
    void set(const std::string& path, std::string data);
    void create(const std::string& path, std::string data, create_options how);
    void remove(const std::string& path);

    /// The error that the first contradicting write ends with. The transaction then has the conditions only: the error
    /// holds if they do.
    const std::optional<error>& contradiction() const noexcept { return contradiction_; }

    std::vector<std::string> read_paths() const;
    bool has_writes() const noexcept { return !contradiction_ && !writes_.empty(); }
    transaction steps() const;

    /// The meaning of the refusal of one of the steps.
    enum class refusal {
        of_a_write,  ///< the conditions hold: the write itself is not possible
        conflict,    ///< another client has changed what was read
        no_parent,   ///< the node is missing because its parent is: the missing parents have to be read as well
    };
    refusal meaning_of(const error& refused) const;

    /// What was read of the nodes whose condition is part of a write. If the servers refuse a write, they have not
    /// looked at the conditions behind it: the write may not be possible only because one of them does not hold.
    std::map<std::string, seen_node> conditions_among_writes() const;
    /// Whether a node is as it was read.
    static bool is_unchanged(const seen_node& read, const seen_node& now) noexcept;

private:
    struct node {
        std::optional<seen_node> read;           // as the servers had it; nothing: not read
        std::optional<seen_node> now;            // as the body sees it; nothing: not known
        std::optional<std::size_t> first_write;  // index in writes_
        std::optional<std::size_t> data_write;   // the write that has given the node its present data
    };

    bool is_known_to_be(bool there, const std::string& path) const;
    node& note_write(transaction::kind what, const std::string& path, std::string data, create_options how);
    void contradict(zk_errc code, const char* operation, const std::string& path, const char* hint);
    bool is_condition_of_first_write(const node& n) const;
    bool has_missing_ancestor(const std::string& path) const;
    bool asserts_absence(const std::string& path, const node& n) const;

    std::map<std::string, node> nodes_;
    std::vector<transaction::step> writes_;
    std::optional<error> contradiction_;
};

/// Nodes whose missing parents have to be read as well, see unit_record::refusal::no_parent.
using orphans = std::set<std::string>;

/// The implementation of a unit.
struct unit_state {
    unit_state(session s, std::shared_ptr<const orphans> o) : on(std::move(s)), with_parents(std::move(o)) {}

    /// Asks for the nodes that are not known yet, in one request; unit::get() takes the answers.
    void read_ahead(std::vector<std::string> paths) {
        std::sort(paths.begin(), paths.end());
        paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
        std::erase_if(paths, [&](const std::string& path) { return record.view(path) || ahead.contains(path); });
        std::vector<pending_data> asked = toolbox(on).start_gets(paths);
        for (std::size_t i = 0; i < paths.size(); ++i) ahead.emplace(std::move(paths[i]), std::move(asked[i]));
    }

    const session on;  // a session::patient()
    const std::shared_ptr<const orphans> with_parents;
    unit_record record;
    std::map<std::string, pending_data> ahead;
    bool ended = false;                 // the body has returned
    std::optional<error> session_over;  // the failure of a read, because the session is over
};

}  // namespace zkasio::transact_detail
