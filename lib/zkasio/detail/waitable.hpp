#pragma once

#include <zkasio/detail/backend.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <system_error>
#include <vector>

namespace zkasio::detail {

/// Something that happens once and that any number of operations may wait for. Lives on the strand.
struct waitable {
    bool done = false;
    std::error_code code;         ///< what the waiters complete with
    std::vector<op_id> waiting;
    std::function<void()> then;  ///< called on the strand before the waiters are woken; may be empty

    void leave(op_id id) {
        if (const auto it = std::find(waiting.begin(), waiting.end(), id); it != waiting.end()) waiting.erase(it);
    }
};

using waitable_ptr = std::shared_ptr<waitable>;

/// A request that was started and whose reply is kept until somebody asks for it.
struct ticket {
    waitable_ptr answered = std::make_shared<waitable>();
    detail::reply reply;
};

/// Where the outcome of an operation goes: to the executor of the coroutine that awaits it.
class receiver {
public:
    virtual ~receiver() = default;
    virtual void deliver(reply&& r) noexcept = 0;
};

}  // namespace zkasio::detail
