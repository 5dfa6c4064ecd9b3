#pragma once

#include <zkasio/detail/base/fork_mark.hpp>

#include <asio/execution_context.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// The process in which a context's reactor was made: after fork(), the child shares the reactor with the parent until
/// the child calls `notify_fork(fork_child)`. Read and changed in turns of the context.
using reactor_mark = std::shared_ptr<fork_mark>;

/// Tells clients what happens to their execution context.
///
/// let_go: the context is destroyed. A client and the coroutines that wait for it keep each other alive: a context that
/// is destroyed with both would leak them. forked: the program has called `notify_fork(fork_child)`.
class shutdown_service : public asio::execution_context::service {
public:
    using key_type = shutdown_service;
    static inline asio::execution_context::id id;

    struct member {
        std::function<void()> let_go, forked;
    };

    explicit shutdown_service(asio::execution_context& context) : service(context) {}

    void add(const void* who, member m) {
        const std::lock_guard lock(mutex_);
        members_[who] = std::move(m);
    }
    void remove(const void* who) {
        const std::lock_guard lock(mutex_);
        members_.erase(who);
    }
    const reactor_mark& reactor() const noexcept { return reactor_; }

private:
    void shutdown() noexcept override {
        std::map<const void*, member> members;
        {
            const std::lock_guard lock(mutex_);
            members.swap(members_);
        }
        for (const auto& [who, m] : members) m.let_go();
    }

    void notify_fork(asio::execution_context::fork_event event) override {
        if (event != asio::execution_context::fork_child) return;
        *reactor_ = fork_mark();
        std::vector<std::function<void()>> all;
        {
            const std::lock_guard lock(mutex_);
            for (const auto& [who, m] : members_) all.push_back(m.forked);
        }
        for (const auto& forked : all) forked();
    }

    std::mutex mutex_;
    std::map<const void*, member> members_;
    reactor_mark reactor_ = std::make_shared<fork_mark>();
};

}  // namespace zkasio::detail
