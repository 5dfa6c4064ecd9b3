#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/base/strand.hpp>
#include <zkasio/log_record.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace zkasio::detail {

/// Records for the user's log sink. From the strand; never throws.
class logger {
public:
    logger(strand_type strand, const client_options::log_sink& sink, log_level least = log_level::info);

    void debug(std::string_view text, std::vector<log_field> f = {}) const noexcept { log(log_level::debug, text, f); }
    void info(std::string_view text, std::vector<log_field> f = {}) const noexcept { log(log_level::info, text, f); }
    void warn(std::string_view text, std::vector<log_field> f = {}) const noexcept { log(log_level::warning, text, f); }
    void error(std::string_view text, std::vector<log_field> f = {}) const noexcept { log(log_level::error, text, f); }
    void log(log_level level, std::string_view text, const std::vector<log_field>& fields) const noexcept;

    /// Calls `f`; an exception of `f` is logged.
    void call(const std::function<void()>& f) const noexcept;

private:
    strand_type strand_;
    std::shared_ptr<const client_options::log_sink> sink_;  // null: nothing is logged
    log_level least_;
};

}  // namespace zkasio::detail
