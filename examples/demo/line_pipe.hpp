#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace demo {

/// Lines from a pipe.
class line_reader {
public:
    /// @param fd becomes ours
    line_reader(asio::any_io_executor executor, int fd) : in_(std::move(executor), fd) {}

    /// *Completes when* at least one line has come; with none at the end of the input.
    asio::awaitable<std::vector<std::string>> read();

private:
    asio::posix::stream_descriptor in_;
    std::array<char, 16384> chunk_{};
    std::string rest_;
};

/// Lines to a pipe, many at a time: a write for each would cost the worker more than the lock does.
class line_writer {
public:
    /// @param fd becomes ours
    line_writer(asio::any_io_executor executor, int fd) : out_(executor, fd), due_(executor) {}

    void send(std::string_view word, std::string_view rest);
    void send_now(std::string_view word, std::string_view rest);

    /// Writes, until finish() or until nobody reads any more.
    asio::awaitable<void> run();
    void finish();

private:
    asio::posix::stream_descriptor out_;
    asio::steady_timer due_;
    std::string pending_;
    bool urgent_ = false;
    bool finished_ = false;
};

}  // namespace demo
