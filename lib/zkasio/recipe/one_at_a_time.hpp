#pragma once

#include <zkasio/error.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace zkasio {

/// An operation that one coroutine at a time may run, such as next() of a stream: a second one is refused. On any
/// threads. For writers of recipes.
class one_at_a_time {
    struct end_turn {
        void operator()(std::atomic<bool>* busy) const noexcept { busy->store(false); }
    };

public:
    /// Ends when destroyed; must not outlive the one_at_a_time.
    using turn = std::unique_ptr<std::atomic<bool>, end_turn>;

    /// @param what for example "next() of this stream". Throws errc::invalid_argument while there is another turn.
    [[nodiscard]] turn begin(std::string_view operation, std::string_view path, std::string_view what) {
        if (busy_.exchange(true))
            throw error(errc::invalid_argument, operation, path, "another coroutine awaits " + std::string(what));
        return turn(&busy_);
    }

private:
    std::atomic<bool> busy_{false};
};

}  // namespace zkasio
