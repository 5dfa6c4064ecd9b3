#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/detail/seam/request.hpp>
#include <zkasio/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::detail {

struct multi_result {
    std::error_code code;
    std::string path;  ///< of a created node
    std::optional<node_stat> stat;
};
struct reply {
    std::error_code code;
    bool sent = false;  ///< the request was sent, and no server has answered it: its outcome is unknown
    /// The bytes of the request, if the servers hang up at it: connections in a row have ended with it, this one, too.
    std::size_t hung_up_at = 0;
    std::uint8_t hung_up_times = 0;  ///< with hung_up_at: by so many connections in a row, up to 255
    bool found = true;  ///< of a removal that succeeded: the node was there
    std::string path;   ///< of a created node
    node_stat stat;
    std::string data;
    std::vector<std::string> children;
    zkasio::acl acl;
    std::vector<multi_result> results;
    /// The failed request, for messages and for another attempt. Only in a failure that a coroutine awaits.
    std::shared_ptr<request> asked;
};

}  // namespace zkasio::detail
