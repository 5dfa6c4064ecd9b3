#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/error.hpp>
#include <zkasio/types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <variant>
#include <vector>

/// The requests to a server, in our own types: one row for each request, with all that other parts need to know.
///
/// `name`: the name in messages; `writes`: the ensemble orders the request among all writes; `watches`: the kind of its
/// watch; `watches_missing_node`: the watch is set even when the answer is "no such node"; `size()`: at least the bytes
/// on the wire without the path; `opcode`: the C library does not know the request, whose frame is ours. A new
/// operation is a row here, a call of the library in c_backend_requests.cpp or a body in own_frames.cpp, and a member
/// of `operations`.
namespace zkasio::detail {

enum class watch_kind {
    data,  ///< the watch of get() and of exists(), as on a server
    children,
    config,  ///< the watch on the data of /zookeeper/config, a path that no chroot applies to
};

std::size_t wire_size(const zkasio::acl& entries) noexcept;
/// Whether an entry has the scheme of default_acl(), which no server knows.
bool has_default(const zkasio::acl& entries) noexcept;
/// Puts these entries in the place of default_acl(). False: it is not there.
bool complete(zkasio::acl& entries, const zkasio::acl& by_default);

struct create_request {
    static constexpr std::string_view name = "create";
    static constexpr bool writes = true;
    std::string path, data;
    zkasio::acl acl;
    create_mode mode = create_mode::persistent;
    std::chrono::milliseconds ttl{0};
    std::size_t size() const noexcept { return 32 + data.size() + wire_size(acl); }
};
struct remove_request {
    static constexpr std::string_view name = "remove";
    static constexpr bool writes = true;
    std::string path;
    std::int32_t version = any_version;
    std::size_t size() const noexcept { return 12; }
};
struct set_request {
    static constexpr std::string_view name = "set";
    static constexpr bool writes = true;
    std::string path, data;
    std::int32_t version = any_version;
    std::size_t size() const noexcept { return 16 + data.size(); }
};
struct exists_request {
    static constexpr std::string_view name = "exists";
    static constexpr bool writes = false;
    static constexpr watch_kind watches = watch_kind::data;
    static constexpr bool watches_missing_node = true;  // fact 18: exists() on a missing node
    std::string path;
    bool watch = false;
    std::size_t size() const noexcept { return 16; }
};
struct get_request {
    static constexpr std::string_view name = "get";
    static constexpr bool writes = false;
    static constexpr watch_kind watches = watch_kind::data;
    std::string path;
    bool watch = false;
    std::size_t size() const noexcept { return 16; }
};
struct children_request {
    static constexpr std::string_view name = "children";
    static constexpr bool writes = false;
    static constexpr watch_kind watches = watch_kind::children;
    std::string path;
    bool watch = false;
    std::size_t size() const noexcept { return 16; }
};
struct sync_request {
    static constexpr std::string_view name = "sync";
    static constexpr bool writes = false;
    std::string path;
    std::size_t size() const noexcept { return 16; }
};
struct get_acl_request {
    static constexpr std::string_view name = "get_acl";
    static constexpr bool writes = false;
    std::string path;
    std::size_t size() const noexcept { return 16; }
};
struct set_acl_request {
    static constexpr std::string_view name = "set_acl";
    static constexpr bool writes = true;
    std::string path;
    zkasio::acl acl;
    std::int32_t version = any_version;
    std::size_t size() const noexcept { return 16 + wire_size(acl); }
};
struct get_config_request {
    static constexpr std::string_view name = "get_config";
    static constexpr bool writes = false;
    static constexpr watch_kind watches = watch_kind::config;
    bool watch = false;
    std::size_t size() const noexcept { return 24; }
};
struct reconfig_request {
    static constexpr std::string_view name = "reconfigure";
    static constexpr bool writes = true;
    std::string joining, leaving, members;
    std::int64_t from_version = -1;
    std::size_t size() const noexcept { return 24 + joining.size() + leaving.size() + members.size(); }
};
struct add_auth_request {
    static constexpr std::string_view name = "add_auth";
    static constexpr bool writes = false;
    std::string scheme, credential;
    bool known = false;  ///< the backend already presents it on every connection: only ask for the outcome
    std::size_t size() const noexcept { return 16 + scheme.size() + credential.size(); }
};
/// Only in a transaction.
struct check_op {
    std::string path;
    std::int32_t version = any_version;
    std::size_t size() const noexcept { return 12; }
};
using multi_op = std::variant<create_request, set_request, remove_request, check_op>;
struct multi_request {
    static constexpr std::string_view name = "multi";
    static constexpr bool writes = true;
    std::vector<multi_op> ops;
    std::size_t size() const noexcept;
};
struct remove_watch_request {
    static constexpr std::string_view name = "remove watch";
    static constexpr bool writes = false;
    std::string path;
    watch_kind kind = watch_kind::data;
    std::size_t size() const noexcept { return 16; }
};
using read_op = std::variant<get_request, children_request>;
/// The watches of its reads are false.
struct multi_read_request {
    static constexpr std::string_view name = "multi_read";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 22;
    std::vector<read_op> reads;
    std::size_t size() const noexcept;
};
struct who_am_i_request {
    static constexpr std::string_view name = "who_am_i";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 107;
    std::size_t size() const noexcept { return 4; }
};
/// Finds the paths that begin with `path`.
struct ephemerals_request {
    static constexpr std::string_view name = "ephemerals";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 103;
    std::string path;
    std::size_t size() const noexcept { return 8; }
};
struct count_below_request {
    static constexpr std::string_view name = "count_below";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 104;
    std::string path;
    std::size_t size() const noexcept { return 8; }
};
/// Sets a watch that stands until its connection ends, or remove_added_watch_request. See
/// backend_listener::on_added_watch().
struct add_watch_request {
    static constexpr std::string_view name = "add watch";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 106;
    std::string path;
    bool recursive = false;  ///< of all nodes below as well, whose changes tell of no children
    std::size_t size() const noexcept { return 12; }
};
/// Takes along the other watches of that path, of all kinds.
struct remove_added_watch_request {
    static constexpr std::string_view name = "remove added watch";
    static constexpr bool writes = false;
    static constexpr std::int32_t opcode = 18;
    std::string path;
    std::size_t size() const noexcept { return 12; }
};
using request = std::variant<create_request, remove_request, set_request, exists_request, get_request, children_request,
                             sync_request, get_acl_request, set_acl_request, get_config_request, reconfig_request,
                             add_auth_request, multi_request, remove_watch_request, multi_read_request,
                             who_am_i_request, ephemerals_request, count_below_request, add_watch_request,
                             remove_added_watch_request>;

inline constexpr std::size_t first_own_request = 14;
static_assert(std::is_same_v<std::variant_alternative_t<first_own_request, request>, multi_read_request>);
/// Whether the C library does not know the request: this one and those behind it.
inline bool is_own(const request& r) noexcept { return r.index() >= first_own_request; }

/// Whether a server orders the request among all writes of the ensemble.
inline bool is_write(const request& r) noexcept {
    return std::visit([](const auto& row) { return std::remove_cvref_t<decltype(row)>::writes; }, r);
}

/// The name of a request in messages.
inline std::string_view operation_name(const request& r) noexcept {
    return std::visit([](const auto& row) { return std::remove_cvref_t<decltype(row)>::name; }, r);
}

/// The path of a request ("": none).
template <class Row>
std::string_view row_path(const Row& row) noexcept {
    if constexpr (requires { row.path; })
        return row.path;
    else
        return {};
}
inline std::string_view path_of(const request& r) noexcept {
    return std::visit([](const auto& row) { return row_path(row); }, r);
}

/// Bytes on the wire, roughly and never too low.
std::size_t encoded_size(const request& r) noexcept;

/// The watch that a request sets, and which answers say that the watch is set.
struct watch_target {
    const std::string* path = nullptr;  ///< null: none
    watch_kind kind = watch_kind::data;
    bool missing_node_counts = false;  ///< the watch is set even when the answer is "no such node"
};
watch_target watch_of(const request& r);

/// Whether the request sets a watch. For one that may set some.
void set_watch(request& r, bool watch) noexcept;

/// Whether "no such node" can only mean that the client's own root is missing.
bool is_about_root(const request& r);

/// Of a step of a transaction, or of a read among several.
struct multi_result {
    std::error_code code;
    std::string path;  ///< of a created node
    std::optional<node_stat> stat;
    std::string data;
    std::vector<std::string> children;
};
struct reply {
    std::error_code code;
    bool sent = false;  ///< the request was sent, and no server has answered it: its outcome is unknown
    /// If the servers hang up at the request: how many connections in a row have ended with it, up to 255.
    std::uint8_t hung_up_times = 0;
    std::size_t hung_up_at = 0;  ///< then, of a write: its bytes
    bool found = true;  ///< of a removal that succeeded: the node was there
    std::string path;   ///< of a created node
    node_stat stat;
    std::string data;
    std::vector<std::string> children;
    zkasio::acl acl;
    std::vector<multi_result> results;
    /// The failed request, for messages and for another attempt. Only in a failure that a coroutine awaits.
    std::shared_ptr<request> asked;
};

}  // namespace zkasio::detail
