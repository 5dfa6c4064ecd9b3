#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace zkasio::testing {

/// A TCP proxy in front of a server, on loopback, that cuts, delays, silences and refuses on demand: a client of
/// address() has a bad network. With a proxy in front of each server of an ensemble, some servers can be cut off and
/// others not.
///
/// The proxy has a thread of its own; all members may be called from any thread. A change happens on the proxy's
/// thread, soon after the call and before the arrival of data that is sent later. The destructor ends the connections.
class ZKASIO_EXPORT proxy {
public:
    enum class end {
        fin,  ///< as from a process that ends regularly
        rst,  ///< as from a process that has crashed, or from a firewall
    };
    static constexpr std::size_t never = static_cast<std::size_t>(-1);

    /// Limits of one connection: the connection ends when this many bytes have passed in that direction (the rest of
    /// that packet is lost).
    struct plan {
        std::size_t cut_requests_after = never, cut_replies_after = never;
        end how = end::rst;
    };

    /// @param server "address:port", numeric. Throws zkasio::error (errc::invalid_argument) for any other text, and
    /// std::system_error if no port is available.
    explicit proxy(const std::string& server);
    ~proxy();
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;

    /// The address for clients to connect to.
    std::string address() const;

    /// `planner` is called on the proxy's thread for each new connection, counted from 0. Must not throw.
    void plan_connections(std::function<plan(std::size_t)> planner);
    void cut_all(end how = end::rst);
    /// While `on`, new connections end at once. Existing connections are not touched.
    void refuse(bool on);
    /// While `on`, nothing passes in either direction, and nothing is answered. The close of a connection by one side
    /// does not pass either. Nothing is lost: data and closes arrive later.
    void silence(bool on);
    /// Data sent from now on, and the end of a connection, arrive later by `each_way`, but never before data that was
    /// sent earlier.
    void delay(any_duration each_way);
    std::size_t connections() const;  ///< accepted so far

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace zkasio::testing
