#pragma once

#include <zkasio/export.hpp>
#include <zkasio/testing/ensemble.hpp>
#include <zkasio/testing/proxy.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::testing {

/// The network between some clients and an ensemble: a proxy in front of each server. Clients that have a network each
/// can be cut off from different servers. Traffic among the servers does not pass here: the servers stay one ensemble,
/// unless ensemble::partition() cuts some of them off from others.
///
/// Thread-safe, as proxies are.
/// *Lifetime*: at most that of the ensemble.
class ZKASIO_EXPORT network {
public:
    explicit network(const ensemble& servers);

    /// The addresses of the proxies, for client_options.
    const std::string& connect_string() const noexcept { return connect_string_; }
    int size() const noexcept { return static_cast<int>(proxies_.size()); }
    /// The proxy in front of this server. Throws std::out_of_range.
    proxy& to(int server) const { return *proxies_.at(static_cast<std::size_t>(server)); }

    /// Connections to this server break, and new ones are refused, until heal().
    void cut_off(int server) const;
    void cut_off_all() const;
    void heal() const;  ///< for all servers

private:
    std::vector<std::unique_ptr<proxy>> proxies_;
    std::string connect_string_;
};

}  // namespace zkasio::testing
