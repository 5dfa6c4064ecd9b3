#include <zkasio/membership/group_view.hpp>

#include <algorithm>

namespace zkasio {

const member_info* group_view::find(std::string_view id) const noexcept {
    const auto found = std::lower_bound(members.begin(), members.end(), id,
                                        [](const member_info& m, std::string_view i) { return m.id < i; });
    return found != members.end() && found->id == id ? &*found : nullptr;
}

}  // namespace zkasio
