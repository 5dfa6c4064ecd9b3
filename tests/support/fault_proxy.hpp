#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zkasio::test {

/// A TCP proxy in front of a server that cuts, delays and swallows on demand. Has a thread of its own; all members may
/// be called from any thread.
class fault_proxy {
public:
    enum class end { fin, rst };
    static constexpr std::size_t never = static_cast<std::size_t>(-1);

    /// What happens to one connection: it ends when this many bytes have passed in that direction (the rest of that
    /// packet is lost).
    struct plan {
        std::size_t cut_requests_after = never, cut_replies_after = never;
        end how = end::rst;
    };

    explicit fault_proxy(const std::string& server);
    ~fault_proxy();
    fault_proxy(const fault_proxy&) = delete;
    fault_proxy& operator=(const fault_proxy&) = delete;

    /// Where clients connect to.
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

    /// Asked for each new connection, counted from 0.
    void plan_connections(std::function<plan(std::size_t)> planner);
    void cut_all(end how = end::rst);
    /// Nothing passes, in either direction, and nothing is answered, while `on`.
    void silence(bool on);
    /// Everything arrives later by `each_way`, from now on.
    void delay(std::chrono::milliseconds each_way);
    std::size_t connections() const;

private:
    struct link;
    void accept();
    void arrive(const std::shared_ptr<link>& l, bool requests);
    void pump(const std::shared_ptr<link>& l, bool requests);

    asio::io_context io_;
    asio::ip::tcp::endpoint server_;
    asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_;
    mutable std::mutex mutex_;
    std::function<plan(std::size_t)> planner_;  // guarded
    std::size_t connections_ = 0;               // guarded
    bool silent_ = false;
    std::chrono::milliseconds delay_{0};
    std::vector<std::weak_ptr<link>> links_;
    std::thread thread_;
};

}  // namespace zkasio::test
