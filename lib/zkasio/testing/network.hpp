#pragma once

#include <zkasio/export.hpp>
#include <zkasio/testing/ensemble.hpp>
#include <zkasio/testing/proxy.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::testing {

/// The network between some clients and an ensemble: a proxy in front of each server. Clients with a network of their
/// own each can be cut off from different servers. What the servers say to each other does not pass here: they stay one
/// ensemble, unless ensemble::partition() cuts some of them off from others.
///
/// *Lifetime*: that of the ensemble at most. Thread-safe, as proxies are.
class ZKASIO_EXPORT network {
public:
    explicit network(const ensemble& servers);

    /// For client_options: through the proxies.
    const std::string& connect_string() const noexcept { return connect_string_; }
    int size() const noexcept { return static_cast<int>(proxies_.size()); }
    /// Throws std::out_of_range.
    proxy& to(int server) const { return *proxies_.at(static_cast<std::size_t>(server)); }

    /// Connections to this server break, and new ones are refused, until heal().
    void cut_off(int server) const;
    void cut_off_all() const;
    void heal() const;  ///< all of them

private:
    std::vector<std::unique_ptr<proxy>> proxies_;
    std::string connect_string_;
};

}  // namespace zkasio::testing
