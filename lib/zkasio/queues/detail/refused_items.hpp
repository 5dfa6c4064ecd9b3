#pragma once

#include <zkasio/recipe/log_warning.hpp>
#include <zkasio/session.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace zkasio::queue_detail {

/// The items of a round that were found not to be handed out: one warning tells of all.
class refused_items {
public:
    void add(const std::string& name, const std::string& why) {
        if (count_++ == 0) first_ = name + ": " + why;
    }
    /// @param kind of the items: "" or " with a delay".
    void tell(const session& on, const std::string& queue, std::string_view kind) {
        const std::size_t n = std::exchange(count_, 0);
        if (n == 0) return;
        std::string text = "the work_queue " + queue + " has ";
        text += n == 1 ? "an item" : std::to_string(n) + " items";
        text.append(kind) += n == 1 ? " that is not handed out: " : " that are not handed out, the first of them: ";
        log_warning(on, text + std::exchange(first_, {}));
    }

private:
    std::size_t count_ = 0;
    std::string first_;
};

}  // namespace zkasio::queue_detail
