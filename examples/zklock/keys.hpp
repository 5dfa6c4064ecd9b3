#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include <optional>

#include <termios.h>

namespace zklock {

/// Single keys of the terminal, for a command that fills the screen until it is ended: without the Enter key and
/// without an echo. The destructor sets the terminal as it was. Ctrl-C and Ctrl-Z do what they always do, and while we
/// run in the background of the terminal, that is left alone.
///
/// Without a terminal for both input and output, or when we begin in its background, nothing is read.
class key_reader {
public:
    explicit key_reader(asio::any_io_executor executor);
    key_reader(const key_reader&) = delete;
    key_reader& operator=(const key_reader&) = delete;
    ~key_reader();

    bool reads() const noexcept { return terminal_.has_value(); }

    /// *Completes when* the key "q" was pressed. *Cancellation* ends it.
    asio::awaitable<void> quit();

private:
    asio::awaitable<void> set_again_when_continued();
    asio::awaitable<void> set_as_before_when_stopped();
    asio::awaitable<char> next();
    bool in_front() noexcept;
    void set() noexcept;
    void set_as_before() noexcept;

    asio::any_io_executor executor_;
    std::optional<asio::posix::stream_descriptor> terminal_;
    asio::signal_set continued_, stopped_;
    asio::steady_timer look_again_;
    termios before_{};
};

}  // namespace zklock
