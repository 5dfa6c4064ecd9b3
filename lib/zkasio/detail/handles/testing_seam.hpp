#pragma once

#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/detail/connection/link.hpp>
#include <zkasio/detail/seam/request.hpp>
#include <zkasio/export.hpp>

#include <asio/any_io_executor.hpp>

#include <cstddef>
#include <random>
#include <string>

/// The internal functions that zkasio::testing needs: a shared library exports these, and nothing else of detail/ but
/// the functions that templates in public headers call.
namespace zkasio::detail {

/// A client over another backend than the C library. Throws as the constructor of `client` does.
ZKASIO_EXPORT client client_over(asio::any_io_executor executor, client_options options, backend_factory factory);

/// The chroot of client_options::servers(); empty: none. Throws as the constructor of `client` does.
ZKASIO_EXPORT std::string chroot_of(const client_options& options);

struct random_engines {
    std::mt19937_64 names, jitter;
};
/// Replaces the random engines of this thread, see random_engine.hpp. Returns the engines that were replaced.
ZKASIO_EXPORT random_engines exchange_random_engines(random_engines by);

/// The bytes of a request on the wire, whose number is limited by the servers.
ZKASIO_EXPORT std::size_t size_on_the_wire(const request& r) noexcept;

}  // namespace zkasio::detail
