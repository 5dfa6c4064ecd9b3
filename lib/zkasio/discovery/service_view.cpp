#include <zkasio/discovery/service_view.hpp>

#include <zkasio/discovery/detail/roster.hpp>

namespace zkasio {

std::uint64_t service_view::version() const noexcept { return listing_ ? listing_->version : 0; }
bool service_view::current() const noexcept { return listing_ && listing_->current; }

void service_view::for_each(
    const std::function<void(const std::string& node, const service_instance& instance)>& f) const {
    if (!listing_) return;
    listing_->members.for_each([&](const discovery_detail::member_ptr& m) { f(m->node, m->instance); });
}

std::vector<service_instance> service_view::instances() const {
    std::vector<service_instance> all;
    if (listing_) all.reserve(listing_->members.size());
    for_each([&](const std::string&, const service_instance& instance) { all.push_back(instance); });
    return all;
}

std::vector<unreadable_instance> service_view::unreadable() const {
    return listing_ ? *listing_->unreadable : std::vector<unreadable_instance>();
}

}  // namespace zkasio
