#pragma once

namespace zkasio::lock_detail {

/// Told of a contender that serves others, see acquire_request::user.
class place_user {
public:
    virtual ~place_user() = default;
    /// The acquire is decided: ask queue_claim::granted(). On the strand, in a turn of its own.
    virtual void decided() noexcept = 0;
};

}  // namespace zkasio::lock_detail
