#pragma once

#include "line_pipe.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace demo {

/// This program once more, in a process of its own, with pipes at its standard input and output. It does not outlive
/// the object.
class process {
public:
    /// Throws std::system_error.
    process(asio::any_io_executor executor, std::vector<std::string> arguments);
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process();

    pid_t id() const noexcept { return pid_; }

    /// Its lines; none when it has closed its output, which it does when it ends.
    asio::awaitable<std::vector<std::string>> read() { return output_.read(); }
    void write(std::string_view line) noexcept;
    void close_input() noexcept;

    /// Without effect once the process was reaped: the number may be somebody else's by then.
    void signal(int number) noexcept;

    /// Waits for the end. Call it when read() returns nothing. Returns what waitpid() says.
    int reap() noexcept;

private:
    struct pipes {
        pipes();
        ~pipes();
        int child_in = -1, to_child = -1, from_child = -1, child_out = -1;
    };
    process(asio::any_io_executor executor, std::vector<std::string> arguments, pipes&& p);

    pid_t pid_ = 0;
    bool reaped_ = false;
    int status_ = 0;
    int input_;
    line_reader output_;
};

/// "ended with status 1", "was killed by signal 9"
std::string describe_status(int status);

}  // namespace demo
