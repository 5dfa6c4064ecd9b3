#pragma once

#include <zkasio/error.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace zkasio {

/// What one coroutine at a time may do, as next() of a stream: refuses a second one. On any threads. For writers of
/// recipes.
class one_at_a_time {
    struct end_turn {
        void operator()(std::atomic<bool>* busy) const noexcept { busy->store(false); }
    };

public:
    /// Ends as it is destroyed; must not outlive what it is of.
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
