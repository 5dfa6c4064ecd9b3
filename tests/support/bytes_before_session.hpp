#pragma once

#include "support/fault_proxy.hpp"

#include <cstddef>

namespace zkasio::test {

/// How many bytes of a connection through `proxy` pass in this direction before any of ZooKeeper's do: in the clear
/// none, with TLS those of its handshake, give or take a few. Connects several times.
std::size_t bytes_before_session(fault_proxy& proxy, bool requests);

}  // namespace zkasio::test
