#pragma once

#include <zkasio/detail/backend.hpp>

namespace zkasio::detail {

/// Where the outcome of an operation goes: to the executor of the coroutine that awaits it.
class receiver {
public:
    virtual ~receiver() = default;
    virtual void deliver(reply&& r) noexcept = 0;
};

}  // namespace zkasio::detail
