#pragma once

#include <asio/any_io_executor.hpp>

namespace zkasio::lock_detail {

/// The right of one contender, among those of its session, to create a certain node: others wait until it is released.
/// Released when destroyed.
class local_right {
public:
    virtual ~local_right() = default;
    /// See lock_claim. By default without effect.
    virtual void body_begins(asio::any_io_executor) {}
    virtual void body_ends(asio::any_io_executor) noexcept {}
    /// Announces release().
    virtual void about_to_release() noexcept {}
    virtual void release() noexcept = 0;
};

}  // namespace zkasio::lock_detail
