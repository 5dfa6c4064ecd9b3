#pragma once

#include <zkasio/detail/requests/one_shot_state.hpp>

#include <memory>

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

}  // namespace zkasio::detail
