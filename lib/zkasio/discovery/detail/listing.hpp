#pragma once

#include <zkasio/discovery/detail/member_list.hpp>
#include <zkasio/discovery/service_view.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zkasio::discovery_detail {

/// The content of a service_view.
struct listing {
    std::uint64_t version = 0;
    bool current = false;
    member_list members;
    std::shared_ptr<const std::vector<unreadable_instance>> unreadable;  // never null
};
using listing_ptr = std::shared_ptr<const listing>;

struct make_service_view {
    static service_view of(listing_ptr l) noexcept { return service_view(std::move(l)); }
};

}  // namespace zkasio::discovery_detail
