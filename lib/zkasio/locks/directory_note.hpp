#pragma once

#include <zkasio/export.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio {

/// The data of a lock's directory: a leader's proclamation, requests to give way. For writers of recipes, for tools.
///
/// The next contender in the queue watches a contender's node, and a write uses up that watch, too. Curator's
/// LeaderLatch waits for the removal of the node in front and for nothing else: after one write into that node, the
/// latch would never lead. An election may share its directory with such latches. So a leader's proclamation and a
/// request to resign are written into the data of the directory, which no contender watches. In other queues, requests
/// are written there that keep the holder's data: revoke() with holder_data::kept.
///
///     zkasio 1
///     leader _c_1d3...-latch-0000000004
///     revoke _c_1d3...-latch-0000000004
///
///     10.0.0.1:80
///
/// A line names a contender by its node, whose random part no other contender has. A line about a contender that has
/// gone therefore has no effect. The data go with the directory.
struct ZKASIO_EXPORT directory_note {
    std::string leader;  ///< node name of the contender that has proclaimed `proclaimed`; "": none has
    std::string proclaimed;
    std::vector<std::string> revoked;  ///< the nodes' names of contenders that were asked to give way

    /// Data that are not a note (for example Curator's) give an empty note.
    static directory_note parse(std::string_view data);
    /// As parse(), for a note that will be written back. *Throws* errc::invalid_argument for data that are neither
    /// empty nor a note: their owner is unknown.
    static directory_note parse_to_write(std::string_view data, std::string_view operation, const std::string& path);
    std::string text() const;

    /// The contender's proclamation; nothing if it has made none.
    std::optional<std::string> proclaimed_by(std::string_view node_name) const;
    bool revokes(std::string_view node_name) const;

    friend bool operator==(const directory_note&, const directory_note&) = default;
};

/// Whether the node's name is one of name_scheme::curator_latch(): Curator's LeaderLatch may watch such a node, so it
/// must not be written to.
ZKASIO_EXPORT bool is_latch_node(std::string_view path) noexcept;

/// Whether the node's name is that of a contender in a queue, with a sequence number behind the id of a protected
/// create: no other node ever has this name, and a line in a directory_note may name it. (A number alone may be part of
/// the name that a user has given to an unfair_mutex, and recurs when another program's directory is re-created.)
ZKASIO_EXPORT bool has_contender_id(std::string_view path) noexcept;

}  // namespace zkasio
