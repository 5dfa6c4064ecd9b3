#pragma once

#include <asio/execution_context.hpp>

#include <functional>
#include <map>
#include <mutex>

namespace zkasio::detail {

/// Lets go of suspended coroutines when their execution context is destroyed.
///
/// A client keeps the coroutines that wait for it, and they keep the client. Whoever destroys the context with all of
/// that pending does not want to leak it.
class shutdown_service : public asio::execution_context::service {
public:
    using key_type = shutdown_service;
    static inline asio::execution_context::id id;

    explicit shutdown_service(asio::execution_context& context) : service(context) {}

    void add(const void* who, std::function<void()> let_go) {
        const std::lock_guard lock(mutex_);
        members_[who] = std::move(let_go);
    }
    void remove(const void* who) {
        const std::lock_guard lock(mutex_);
        members_.erase(who);
    }

private:
    void shutdown() noexcept override {
        std::map<const void*, std::function<void()>> members;
        {
            const std::lock_guard lock(mutex_);
            members.swap(members_);
        }
        for (const auto& [who, let_go] : members) let_go();
    }

    std::mutex mutex_;
    std::map<const void*, std::function<void()>> members_;
};

}  // namespace zkasio::detail
