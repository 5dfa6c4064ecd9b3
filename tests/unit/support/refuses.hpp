#pragma once

#include "support/test_client.hpp"

#include <zkasio/error.hpp>

#include <asio/awaitable.hpp>

#include <utility>

namespace zkasio::test {

template <class T>
asio::awaitable<void> refuses(const char* what, asio::awaitable<T> operation, errc expected = errc::invalid_argument) {
    const std::error_code code = co_await code_of(std::move(operation));
    INFO(what);
    CHECK(code == expected);
}

}  // namespace zkasio::test
