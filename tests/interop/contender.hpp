#pragma once

#include "interop/peer.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace zkasio::test {

/// Somebody who gets in line for a lock, holds it and releases it.
class contender {
public:
    virtual ~contender() = default;
    virtual void join() = 0;
    /// *Completes when* it has the lock, with its node's path.
    virtual asio::awaitable<std::string> acquired() = 0;
    virtual bool has_it() const = 0;
    virtual asio::awaitable<void> release() = 0;
};

/// *Completes when* whatever this client had been told of `path` before has had its effect: for "still nobody else has
/// it".
asio::awaitable<void> told_all(client zk, std::string path);

/// One of ours.
class our_contender : public contender {
public:
    our_contender(asio::any_io_executor executor, std::function<asio::awaitable<lock_guard>()> acquire)
        : executor_(std::move(executor)), acquire_(std::move(acquire)) {}
    our_contender(asio::any_io_executor executor, mutex lock)
        : our_contender(std::move(executor), [lock] { return lock.acquire(); }) {}
    void join() override;
    asio::awaitable<std::string> acquired() override;
    bool has_it() const override { return guard_->has_value(); }
    asio::awaitable<void> release() override;

private:
    asio::any_io_executor executor_;
    std::function<asio::awaitable<lock_guard>()> acquire_;
    std::shared_ptr<std::optional<lock_guard>> guard_ = std::make_shared<std::optional<lock_guard>>();
    std::optional<running> waiting_;
};

/// One of another library's. Uses the peer's thread `id` alone.
class peer_contender : public contender {
public:
    peer_contender(peer& process, std::string id, std::string kind, std::string path, std::string argument = {})
        : process_(process),
          id_(std::move(id)),
          what_(std::move(kind) + " " + std::move(path) + " " + std::move(argument)) {}
    void join() override { process_.send(id_ + " acquire " + what_); }
    asio::awaitable<std::string> acquired() override { return process_.acquired(id_); }
    bool has_it() const override { return process_.answered(id_); }
    asio::awaitable<void> release() override;

private:
    peer& process_;
    std::string id_, what_;
};

}  // namespace zkasio::test
