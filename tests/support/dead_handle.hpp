#pragma once

#include "support/catch.hpp"

#include <asio/awaitable.hpp>

#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace zkasio::test {

/// A handle that dies before its time, and whose memory then holds nothing that could pass for a handle.
template <class Handle>
class mortal {
public:
    explicit mortal(Handle h) : memory_(::operator new(sizeof(Handle))), handle_(new (memory_) Handle(std::move(h))) {}
    mortal(const mortal&) = delete;
    mortal& operator=(const mortal&) = delete;
    ~mortal() {
        die();
        ::operator delete(memory_);
    }
    Handle& operator*() const { return *handle_; }
    void die() {
        if (!handle_) return;
        std::exchange(handle_, nullptr)->~Handle();
        std::memset(memory_, 0xdd, sizeof(Handle));
    }

private:
    void* memory_;
    Handle* handle_;
};

/// Calls `call(handle)`, destroys the handle, awaits what the call has returned, and checks what that ends with.
/// @param header_and_name of the member, for the test that looks whether all have been tried: "client.hpp connected".
template <class Handle, class Call>
asio::awaitable<void> when_dead(const char* header_and_name, Handle handle, Call call, std::error_code expected = {}) {
    std::error_code code;
    mortal<Handle> doomed(std::move(handle));
    auto result = call(*doomed);
    doomed.die();
    try {
        (void)co_await std::move(result);
    } catch (const std::system_error& e) {
        code = e.code();
    }
    INFO(header_and_name);
    CHECK(code == expected);
}

}  // namespace zkasio::test
