#pragma once

#include "support/test_client.hpp"
#include "support/texts.hpp"

#include <string>

namespace zkasio::test {

/// Why `zk` cannot read, in words; empty when it can. That an attempt to connect has not ended yet is no reason: on a
/// loaded machine, and with a server that has only just begun, it may take longer than an operation waits for it.
inline asio::awaitable<std::string> refusal_of(client zk) {
    std::string text;
    auto told = [&]() -> asio::awaitable<bool> {
        text = co_await message_of(zk.get("/"));
        const bool under_way = has(text, "accepts the connection and does not") ||
                               has(text, "no answer to the attempt to connect") || has(text, "still looking for");
        co_return !under_way;
    };
    co_await eventually(told);
    co_return text;
}

}  // namespace zkasio::test
