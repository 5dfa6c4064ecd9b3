#pragma once

#include <zkasio/export.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// What the data of a lock's directory say of contenders. For writers of recipes, and for tools.
///
/// A contender's node is watched by the contender behind it, and a watch is used up by a write, too. Curator's
/// LeaderLatch waits for the removal of that node and for nothing else: after one write into the node of the contender
/// in front it would never lead. So in an election, which such a latch may share, what a leader proclaims and a request
/// to resign are written into the data of the directory, which no contender watches.
///
///     zkasio 1
///     leader _c_1d3...-latch-0000000004
///     revoke _c_1d3...-latch-0000000004
///
///     10.0.0.1:80
///
/// A contender is named by its node, whose random part no other contender has: what was written about one that has gone
/// concerns nobody. The data go with the directory.
struct ZKASIO_EXPORT directory_note {
    std::string leader;  ///< the node's name of who has proclaimed `proclaimed`; "": nobody has
    std::string proclaimed;
    std::vector<std::string> revoked;  ///< the nodes' names of contenders that were asked to give way

    /// Data that are no note, of Curator for one, say nothing.
    static directory_note parse(std::string_view data);
    /// The same, to be written again. *Throws* errc::invalid_argument of data that are no note, and not empty either:
    /// whose they are, nobody knows.
    static directory_note parse_to_write(std::string_view data, std::string_view operation, const std::string& path);
    std::string text() const;

    /// What the contender has proclaimed; nothing when it has not.
    std::optional<std::string> proclaimed_by(std::string_view node_name) const;
    bool revokes(std::string_view node_name) const;

    friend bool operator==(const directory_note&, const directory_note&) = default;
};

/// Whether the node is a contender's that Curator's LeaderLatch may watch: one with a name of
/// name_scheme::curator_latch(). Such a node is not to be written to.
ZKASIO_EXPORT bool is_latch_node(std::string_view path) noexcept;

}  // namespace zkasio
