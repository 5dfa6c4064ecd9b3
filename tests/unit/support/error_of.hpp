#pragma once

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/error.hpp>

#include <optional>

namespace zkasio::test {

/// The zkasio::error that `call()` throws, or nothing.
template <class Call>
std::optional<error> error_of(Call call) {
    try {
        call();
    } catch (const error& e) {
        return e;
    }
    return std::nullopt;
}

/// Its code; ok when nothing is thrown.
template <class Call>
std::error_code code_thrown_by(Call call) {
    const std::optional<error> e = error_of(call);
    return e ? e->code() : std::error_code();
}

}  // namespace zkasio::test
