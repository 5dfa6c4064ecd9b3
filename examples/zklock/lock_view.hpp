#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/lock_listing.hpp>

#include <asio/awaitable.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zklock {

using directory_kind = zkasio::lock_directory_kind;

/// For operators: "free", "mutex", "read-write lock" ...
std::string_view name_of(directory_kind k) noexcept;

struct contender {
    std::string path;
    zkasio::lock_kind side = zkasio::lock_kind::exclusive;
    bool holds = false;
    std::int64_t session_id = 0;  ///< 0: the node is not ephemeral and stays for ever
    std::int64_t created_ms = 0;
    std::int64_t token = 0;
    std::string data;
    nlohmann::ordered_json who;  ///< the data, where it is a JSON object; else null
    bool revoke_requested = false;
    std::optional<std::string> proclaimed;  ///< by a leader, see zkasio::directory_note
    std::optional<std::chrono::milliseconds> held;  ///< of a holder, where the lock is watched: see grant_meter
    bool held_at_least = false;  ///< it holds longer than that: it held already when watching began
};

/// How often a lock was granted while it was watched.
struct grant_rate {
    std::int64_t count = 0;
    double per_second = 0;  ///< of the last ten seconds
    std::chrono::milliseconds watched{0};
};

/// One lock as it was at some moment, whoever takes part in it.
struct lock_view {
    std::string path;
    bool exists = true;
    directory_kind kind = directory_kind::empty;
    std::vector<contender> contenders;  ///< holders first, then those who wait, in order
    std::vector<std::string> foreign;   ///< names of children that are no contenders of this kind of lock
    std::optional<grant_rate> grants;   ///< where the lock is watched

    std::vector<contender> holders() const;
};

asio::awaitable<lock_view> read_lock(zkasio::client zk, std::string path);

nlohmann::ordered_json to_json(const lock_view& v);
/// A header, and a line for each contender. Nothing in it can control a terminal.
std::string to_text(const lock_view& v);
/// "mutex, 1 and 2 waiting"
std::string summary(const lock_view& v);
/// "0.4 grants/s, 12 in 30 s"; nothing where the lock is not watched.
std::string rate_text(const lock_view& v);
/// How long a holder holds, ">12 s" where it held before the lock was watched; of others, and where it is not watched,
/// the age of the node.
std::string held_text(const contender& c);
/// Whether somebody who looks at both sees a difference. Ages and rates, which always change, are none.
bool looks_the_same(const lock_view& a, const lock_view& b);
/// "web1, pid 4711, deploy: pg_dump", or what its data are.
std::string describe(const contender& c);

}  // namespace zklock
