#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/lock_kind.hpp>

#include <asio/awaitable.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zklock {

/// What the children of a directory say that it is.
enum class directory_kind {
    empty,       ///< nobody holds and nobody waits
    mutex,       ///< Curator's InterProcessMutex, go-zk's and zkasio's; kazoo's Lock
    read_write,  ///< readers and writers
    election,    ///< Curator's LeaderLatch
    semaphore,   ///< Curator's InterProcessSemaphoreV2
    flag,        ///< the node itself is the lock: an ephemeral one
    foreign,     ///< it has children, and none is a contender
};

std::string_view to_string(directory_kind k) noexcept;

/// What a child's name says. Nothing for one that is no contender of any kind of lock.
struct contender_name {
    directory_kind kind = directory_kind::mutex;
    zkasio::lock_kind side = zkasio::lock_kind::exclusive;
};
std::optional<contender_name> classify(std::string_view name);

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
};

/// One lock as it was at some moment, whoever takes part in it.
struct lock_view {
    std::string path;
    bool exists = true;
    directory_kind kind = directory_kind::empty;
    std::vector<contender> contenders;  ///< holders first, then those who wait, in order
    std::vector<std::string> foreign;   ///< names of children that are no contenders of this kind of lock

    std::vector<contender> holders() const;
};

asio::awaitable<lock_view> read_lock(zkasio::client zk, std::string path);

nlohmann::ordered_json to_json(const lock_view& v);
/// A header, and a line for each contender. Nothing in it can control a terminal.
std::string to_text(const lock_view& v);
/// "web1, pid 4711, deploy: pg_dump", or what its data are.
std::string describe(const contender& c);

}  // namespace zklock
