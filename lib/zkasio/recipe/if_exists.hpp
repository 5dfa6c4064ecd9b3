#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/pending.hpp>

#include <asio/awaitable.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// `std::optional<node_data> found = co_await if_exists(zk.get("/a"))`: a read of a node that need not exist. For
/// writers of recipes.
/// *Completes when* the read does, with its result; with nothing if there is no node.
/// *Fails with* the other errors of the read.
/// *Cancellation*: as the read.
template <class Result>
asio::awaitable<std::optional<Result>> if_exists(asio::awaitable<Result> read) {
    if (!read.valid()) throw error(errc::invalid_argument, "if_exists", {}, "the operation is empty");
    std::optional<Result> found;
    try {
        Result result = co_await std::move(read);
        found.emplace(std::move(result));
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) throw;
    }
    co_return std::move(found);
}

/// The names of the children, unsorted; none if there is no node. For writers of recipes.
/// *Fails with* the other errors of operations::children().
ZKASIO_EXPORT asio::awaitable<std::vector<std::string>> children_if_any(operations on, std::string path);

/// *Completes with* whether sequential nodes with this marker in their names stand below `path`: the contenders of a
/// lock, who make writers wait (promote_to()). Other children do not count, unless there are very many. No if there is
/// no node, or if an answer is an error.
/// *Cancellation*: fails.
/// @param earlier the answer of toolbox::start_exists() for `path`. If it says that there are children, they may have
/// been those of this client's last turn, about to be removed: then the servers are asked again.
ZKASIO_EXPORT asio::awaitable<bool> has_contenders(operations on, std::string path, std::string marker,
                                                   pending_data earlier);

}  // namespace zkasio
