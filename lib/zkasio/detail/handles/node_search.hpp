#pragma once

#include <zkasio/detail/client/await.hpp>

#include <asio/awaitable.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::detail {

/// The names of a directory's children that carry protection ids, by protection id.
using nodes_by_id = std::multimap<std::string, std::string>;

/// The searches in one directory for nodes whose creates have lost their answers. There may be thousands of searches at
/// a time, after one cut. So all searches that were requested before a listing is sent share that listing. On the
/// strand.
struct node_search {
    struct wanted {
        std::vector<std::string> ids;
        nodes_by_id found;
        one_shot_ptr done = std::make_shared<one_shot_state>();
    };
    std::vector<std::shared_ptr<wanted>> waiting;
};

/// A sync (a server that lags behind does not show a node yet) and a listing, repeated until both have succeeded, or
/// the session is over. *Fails with* the code that the servers refuse the listing with, or that ends the session.
asio::awaitable<nodes_by_id> find_nodes(core_ptr c, view_root root, session_record_ptr pinned, std::string directory,
                                        std::vector<std::string> ids);

}  // namespace zkasio::detail
