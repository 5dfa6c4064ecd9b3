#pragma once

#include "interop/contender.hpp"
#include "interop/library.hpp"

#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

/// Contenders of several libraries who come one after another, and have to get the lock in that order, one at a time.
class line_up {
public:
    line_up(client zk, std::string path, mutex_options o = mutex_options())
        : zk_(std::move(zk)), path_(std::move(path)), options_(std::move(o)) {}

    /// One more is in line.
    asio::awaitable<void> ours() { return ours(zk_); }
    asio::awaitable<void> ours(client zk);
    /// The place of a cohort_mutex. One for each client.
    asio::awaitable<void> our_cohort(client zk);
    asio::awaitable<void> theirs(library who);

    /// Lets all of them have it, and checks that each has it alone.
    asio::awaitable<void> drain();

private:
    asio::awaitable<void> join(std::unique_ptr<contender> next);

    client zk_;
    std::string path_;
    mutex_options options_;
    std::vector<std::unique_ptr<contender>> line_;
};

}  // namespace zkasio::test
