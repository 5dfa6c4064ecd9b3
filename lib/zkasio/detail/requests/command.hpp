#pragma once

#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/requests/watch_registry.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// A started request. Its reply is kept until a caller takes the reply.
struct kept_reply {
    op_id id = 0;
    one_shot_state answered;
    detail::reply reply;
};

using kept_reply_ptr = std::shared_ptr<kept_reply>;

/// The event `answered` of `kept`. The pointer keeps all of `kept` alive.
inline one_shot_ptr answer_of(const kept_reply_ptr& kept) { return one_shot_ptr(kept, &kept->answered); }

struct session_record;
using session_record_ptr = std::shared_ptr<session_record>;

/// A request on its way, with its session, and the watch that it sets, if any. Without a request: a wait until there is
/// a connection over which one could be sent.
struct command {
    command() = default;
    template <class Request>
        requires std::constructible_from<request, Request>
    explicit command(Request&& r, std::error_code no_failure = {})
        : what(std::forward<Request>(r)), expected(no_failure) {}

    std::optional<request> what;
    session_record_ptr pinned;  ///< null: the current session
    watch_ptr watch;
    std::error_code expected;  ///< a code that is no failure
    bool again = false;         ///< a repetition: the request was sent before, and has failed
    bool patient = false;       ///< see session::patient()
    bool begun = false;  ///< the operation has had an effect: a total cancellation does not take this write back
    bool of_contender = false;  ///< the create of a node that only waits in the queue of a lock, see ephemeral_budget
    std::uint64_t connection = 0;  ///< see node_feeds::connection(): sent on this one or not at all; 0: on any
    bool is_whole = false;         ///< the root of a view stands in front of its paths, see make_whole()
    bool sets_again = false;       ///< sets a watch again on a new connection, for its waiters
};

}  // namespace zkasio::detail
