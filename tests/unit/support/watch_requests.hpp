#pragma once

#include "support/catch.hpp"

#include <zkasio/detail/requests/watch_registry.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace zkasio::test {

using watches = std::vector<detail::watch_ptr>;

inline detail::watch_ptr waiter(std::string path, detail::watch_kind kind = detail::watch_kind::data) {
    auto w = std::make_shared<detail::watch_state>();
    w->path = std::move(path);
    w->kind = kind;
    return w;
}

/// A request that sets a watch, and its good answer.
inline detail::watch_ptr set(detail::watch_registry& r, const std::string& path,
                             detail::watch_kind kind = detail::watch_kind::data) {
    auto w = waiter(path, kind);
    r.begin(path, kind);
    CHECK_FALSE(r.finish(path, kind, true, w));
    return w;
}

inline bool same(watches a, watches b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return a == b;
}

}  // namespace zkasio::test
