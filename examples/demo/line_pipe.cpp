#include "line_pipe.hpp"

#include <asio/buffer.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <utility>

namespace demo {

using namespace std::chrono_literals;

asio::awaitable<std::vector<std::string>> line_reader::read() {
    std::vector<std::string> lines;
    while (lines.empty()) {
        std::error_code failed;
        const std::size_t n =
            co_await in_.async_read_some(asio::buffer(chunk_), asio::redirect_error(asio::use_awaitable, failed));
        if (failed) break;
        rest_.append(chunk_.data(), n);
        std::size_t from = 0;
        for (std::size_t to; (to = rest_.find('\n', from)) != std::string::npos; from = to + 1)
            lines.push_back(rest_.substr(from, to - from));
        rest_.erase(0, from);
    }
    co_return lines;
}

void line_writer::send(std::string_view word, std::string_view rest) {
    pending_.append(word).append(" ").append(rest).append("\n");
}

void line_writer::send_now(std::string_view word, std::string_view rest) {
    send(word, rest);
    urgent_ = true;
    due_.cancel();
}

asio::awaitable<void> line_writer::run() {
    while (!finished_ || !pending_.empty()) {
        std::error_code failed;
        if (!urgent_) {
            due_.expires_after(100ms);
            co_await due_.async_wait(asio::redirect_error(asio::use_awaitable, failed));
        }
        urgent_ = finished_;
        const std::string batch = std::exchange(pending_, {});
        if (batch.empty()) continue;
        co_await asio::async_write(out_, asio::buffer(batch), asio::redirect_error(asio::use_awaitable, failed));
        if (failed) co_return;
    }
}

void line_writer::finish() {
    finished_ = urgent_ = true;
    due_.cancel();
}

}  // namespace demo
