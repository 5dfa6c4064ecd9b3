#pragma once

#include <zkasio/error.hpp>

#include <string_view>

namespace zkasio::lock_detail {

/// In a catch block around a one_shot_event::wait(), which knows neither what is waited for nor the lock: throws the
/// same with these.
[[noreturn]] inline void rethrow_as(std::string_view operation, std::string_view path) {
    try {
        throw;
    } catch (const error& e) {
        throw error(e.code(), operation, path);
    }
}

}  // namespace zkasio::lock_detail
