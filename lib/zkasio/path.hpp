#pragma once

#include <zkasio/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zkasio {

/// Why `path` is not a valid path of a node; an empty string if the path is valid. The rules are those of ZooKeeper's
/// Java client (PathUtils): absolute, no empty, "." or ".." parts, no trailing '/', no NUL, control, surrogate,
/// private-use or U+FFF0..U+FFFF characters. The path also has to be UTF-8.
ZKASIO_EXPORT std::string path_problem(std::string_view path);

/// Throws errc::invalid_path, with path_problem() as its hint, unless the path is valid. @param operation for messages.
ZKASIO_EXPORT void require_path(std::string_view operation, std::string_view path);
/// As require_path(), for a node of which all children are the recipe's: "/" is refused, too.
ZKASIO_EXPORT void require_directory(std::string_view operation, std::string_view path);

/// Whether the node is /zookeeper or below it: these nodes belong to the servers. @param path without a chroot.
ZKASIO_EXPORT bool belongs_to_servers(std::string_view path) noexcept;

/// "/a/b" -> "/a"; "/a" -> "/"; "/" -> "".
ZKASIO_EXPORT std::string_view parent_path(std::string_view path) noexcept;

/// "/a/b" -> "b".
ZKASIO_EXPORT std::string_view node_name(std::string_view path) noexcept;

/// ("/a", "b") -> "/a/b"; ("/", "b") -> "/b".
ZKASIO_EXPORT std::string join_path(std::string_view parent, std::string_view name);

/// The sequence number at the end of the name of a sequential node. For writers of recipes.
struct sequence_suffix {
    std::string_view digits;  ///< as written in the name: "%010d" of a signed
                              ///< number, so 2^31 nodes later with a '-'
    std::int32_t number = 0;
};

/// The number behind the last `marker` in `name` ("_c_<uuid>-lock-0000000012" with "lock-" is 12). Nothing if the name
/// does not end so.
ZKASIO_EXPORT std::optional<sequence_suffix> sequence_behind(std::string_view name, std::string_view marker) noexcept;

}  // namespace zkasio
