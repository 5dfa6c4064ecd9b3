#pragma once

#include <zkasio/locks/detail/queue/lock_queue.hpp>

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

inline const lock_detail::queue_names mutex_names(name_scheme::curator(), "lock-", "", "/l");
inline const lock_detail::queue_names shared_names(name_scheme::curator(), "__WRIT__", "__READ__", "/l");

/// Names outlive the test, as the order expects.
inline const std::string& with_sequence(const std::string& prefix, std::int32_t sequence) {
    static std::set<std::string> names;
    char number[16];
    std::snprintf(number, sizeof number, "%010d", sequence);
    return *names.insert(prefix + number).first;
}
inline const std::string& lock(std::int32_t sequence) { return with_sequence("_c_x-lock-", sequence); }
inline const std::string& reader(std::int32_t sequence) { return with_sequence("_c_x-__READ__", sequence); }
inline const std::string& writer(std::int32_t sequence) { return with_sequence("_c_x-__WRIT__", sequence); }

/// The order does not look into it.
inline lock_detail::contender_ptr somebody() {
    static char nobody[sizeof(lock_detail::contender)];
    return lock_detail::contender_ptr(reinterpret_cast<lock_detail::contender*>(nobody),
                                      [](lock_detail::contender*) {});
}

inline void list(lock_detail::queue_order& o, const std::vector<std::string>& names) {
    o.listed(names, o.begin_listing());
}

}  // namespace zkasio::test
