#pragma once

#include <zkasio/export.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace zkasio::testing {

/// A TCP proxy in front of a server, on loopback, that cuts, delays, silences and refuses on demand: a client of
/// address() has a bad network. One in front of each server of an ensemble cuts off some servers and not others.
///
/// Has a thread of its own; all members may be called from any thread. What is asked for happens on that thread, soon
/// after the call and before what is sent later arrives. The end of this object ends the connections.
class ZKASIO_EXPORT proxy {
public:
    enum class end {
        fin,  ///< as a process does that ends in order
        rst,  ///< as a process that has crashed, or a firewall
    };
    static constexpr std::size_t never = static_cast<std::size_t>(-1);

    /// What happens to one connection: it ends when this many bytes have passed in that direction (the rest of that
    /// packet is lost).
    struct plan {
        std::size_t cut_requests_after = never, cut_replies_after = never;
        end how = end::rst;
    };

    /// @param server "address:port", numeric. Throws zkasio::error (errc::invalid_argument) for something else, and
    /// std::system_error when no port can be had.
    explicit proxy(const std::string& server);
    ~proxy();
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;

    /// Where clients connect to.
    std::string address() const;

    /// Asked for each new connection, counted from 0, on the proxy's thread. Must not throw.
    void plan_connections(std::function<plan(std::size_t)> planner);
    void cut_all(end how = end::rst);
    /// While `on`, new connections end at once. Those that stand are not touched.
    void refuse(bool on);
    /// Nothing passes, in either direction, and nothing is answered, while `on`; that one side has closed its
    /// connection is not told either. Nothing is lost: it arrives later.
    void silence(bool on);
    /// What is sent from now on, and that a connection ends, arrives later by `each_way`, but never before what was
    /// sent before it.
    void delay(std::chrono::milliseconds each_way);
    std::size_t connections() const;  ///< that were accepted so far

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace zkasio::testing
