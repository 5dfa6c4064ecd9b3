#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/strand.hpp>

#include <functional>
#include <memory>
#include <string_view>

namespace zkasio::detail {

/// Lines for the user's log sink. From the strand; never throws.
class logger {
public:
    logger(strand_type strand, const client_options::log_sink& sink);

    void line(std::string_view text) const noexcept;

    /// Calls `f`; what it throws is logged.
    void call(const std::function<void()>& f) const noexcept;

private:
    strand_type strand_;
    std::shared_ptr<const client_options::log_sink> sink_;  // null: nothing is logged
};

}  // namespace zkasio::detail
