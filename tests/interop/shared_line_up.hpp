#pragma once

#include "interop/contender.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

constexpr lock_kind reading = lock_kind::shared, writes = lock_kind::exclusive;

/// Readers and writers of ours and of one peer who come one after another, and have to get the lock in that order: each
/// writer alone, the readers between two writers together.
class shared_line_up {
public:
    shared_line_up(client zk, peer& process, std::string path, shared_mutex_options o = shared_mutex_options())
        : zk_(std::move(zk)),
          process_(process),
          path_(std::move(path)),
          lock_(zk_, path_, o),
          options_(std::move(o)),
          ours_{zk_} {}

    asio::awaitable<void> ours(lock_kind kind) { return ours(kind, zk_); }
    asio::awaitable<void> ours(lock_kind kind, client zk) {
        const shared_mutex lock(zk, path_, options_);
        ours_.push_back(zk);
        const auto acquire = [lock, kind] { return kind == reading ? lock.acquire_shared() : lock.acquire(); };
        return join(kind, std::make_unique<our_contender>(zk.get_executor(), acquire));
    }
    asio::awaitable<void> theirs(lock_kind kind) {
        const std::string id = "q" + std::to_string(++ids_);
        return join(kind, std::make_unique<peer_contender>(process_, id, kind == reading ? "read" : "write", path_));
    }

    /// The first `n` are let in, and nobody else.
    asio::awaitable<void> inside(std::size_t n) {
        std::vector<std::string> nodes;
        for (std::size_t i = 0; i < n; ++i) {
            std::string node = co_await line_[i].who->acquired();
            nodes.push_back(std::move(node));
        }
        co_await zk_.sync(path_);
        const std::vector<contender_info> list = co_await lock_.contenders();
        REQUIRE(list.size() == line_.size());
        for (std::size_t i = 0; i < n; ++i) CHECK(list[i].path == nodes[i]);
        for (std::size_t i = 0; i < line_.size(); ++i) CHECK(list[i].kind == line_[i].kind);
        co_await only(n);
    }

    /// Lets all of them have it.
    asio::awaitable<void> drain() {
        while (!line_.empty()) {
            std::size_t together = 0;
            while (together < line_.size() && line_[together].kind == reading) ++together;
            co_await inside(std::max<std::size_t>(together, 1));
            for (; together > 1; --together) {  // the last of them lets the next writer in, whoever it is
                co_await release(together / 2);
                co_await only(together - 1);
            }
            co_await release(0);
        }
    }

private:
    struct member {
        lock_kind kind;
        std::unique_ptr<contender> who;
    };
    asio::awaitable<void> only(std::size_t n) const {
        for (const client& c : ours_) co_await told_all(c, path_);
        for (std::size_t i = n; i < line_.size(); ++i) CHECK_FALSE(line_[i].who->has_it());
    }
    asio::awaitable<void> release(std::size_t i) {
        co_await line_[i].who->release();
        line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
        co_await until_queued(zk_, path_, line_.size());
    }
    asio::awaitable<void> join(lock_kind kind, std::unique_ptr<contender> next) {
        next->join();
        line_.push_back({kind, std::move(next)});
        return until_queued(zk_, path_, line_.size());
    }

    client zk_;
    peer& process_;
    std::string path_;
    shared_mutex lock_;
    shared_mutex_options options_;
    std::vector<client> ours_;
    std::vector<member> line_;
    int ids_ = 0;
};

}  // namespace zkasio::test
