#include <zkasio/detail/handles/testing_seam.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/detail/handles/access.hpp>

#include <memory>
#include <utility>

namespace zkasio::detail {

client client_over(asio::any_io_executor executor, client_options options, backend_factory factory) {
    return access::make<client>(
        std::make_shared<core>(std::move(executor), std::move(options), std::move(factory)));
}

std::string chroot_of(const client_options& options) {
    return parse_server_list(options.servers(), "client options").chroot;
}

random_engines exchange_random_engines(random_engines by) {
    return {std::exchange(random_engine(), by.names), std::exchange(jitter_engine(), by.jitter)};
}

std::size_t size_on_the_wire(const request& r) noexcept { return encoded_size(r); }

}  // namespace zkasio::detail
