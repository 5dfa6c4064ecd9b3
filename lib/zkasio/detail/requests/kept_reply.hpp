#pragma once

#include <zkasio/detail/requests/one_shot_state.hpp>

#include <memory>

namespace zkasio::detail {

/// A request that was started and whose reply is kept until somebody asks for it.
struct kept_reply {
    op_id id = 0;
    one_shot_state answered;
    detail::reply reply;
};

using kept_reply_ptr = std::shared_ptr<kept_reply>;

/// Its `answered`, which keeps it alive.
inline one_shot_ptr answer_of(const kept_reply_ptr& kept) { return one_shot_ptr(kept, &kept->answered); }

}  // namespace zkasio::detail
