#pragma once

#include <zkasio/client.hpp>
#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/handles/access.hpp>

#include <memory>
#include <utility>

namespace zkasio::test {

/// A client over a core that a test has made, with a backend of its own.
inline client client_over(std::shared_ptr<detail::core> core) { return detail::access::make<client>(std::move(core)); }

}  // namespace zkasio::test
