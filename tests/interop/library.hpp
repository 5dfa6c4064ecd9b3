#pragma once

#include "interop/peer.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// A library's lock, as its peer knows it.
struct library {
    library(peer& p, std::string k, bool data) : process(p), kind(std::move(k)), has_data(data) {}
    peer& process;
    std::string kind;
    bool has_data;  ///< writes something into its nodes
};

/// One process of each.
struct all_peers {
    explicit all_peers(const asio::any_io_executor& e) : curator(e, "curator"), gozk(e, "gozk"), kazoo(e, "kazoo") {}
    asio::awaitable<void> ready() {
        co_await curator.ready();
        co_await gozk.ready();
        co_await kazoo.ready();
    }
    asio::awaitable<void> exit() {
        co_await curator.exit();
        co_await gozk.exit();
        co_await kazoo.exit();
    }
    peer curator, gozk, kazoo;
};

/// Those that can share a directory with Curator: kazoo takes part with Curator's names.
inline std::vector<library> libraries(all_peers& all) {
    return {library(all.curator, "mutex", true), library(all.gozk, "lock", false),
            library(all.kazoo, "curator-names", true)};
}

}  // namespace zkasio::test
