#pragma once

#include "unit/membership/parts_bench.hpp"

#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

// Short names, of these tests only.
namespace zkasio::test::request_steps {

using namespace detail;

// What one asker got.
struct outcome final {
    std::vector<reply> replies;
    request_receiver to() {
        struct target {
            void deliver(reply&& r) noexcept { o->replies.push_back(std::move(r)); }
            outcome* o;
        };
        return request_receiver(target{this});
    }
    bool done() const { return replies.size() == 1; }
    std::error_code code() const { return replies.at(0).code; }
};

inline command getting(std::string path, watch_ptr w = nullptr) {
    command c(get_request{path, w != nullptr});
    if (w) w->path = std::move(path);
    c.watch = std::move(w);
    return c;
}

inline command removing(std::string path) {
    command c(remove_request{std::move(path), any_version});
    return c;
}

inline std::vector<std::string> submitted_paths(const parts_bench& b) {
    std::vector<std::string> all;
    for (const auto& [id, what] : b.backend.submitted) all.emplace_back(path_of(what));
    return all;
}

}  // namespace zkasio::test::request_steps
