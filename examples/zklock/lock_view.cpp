#include "lock_view.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace zklock {
namespace {

using zkasio::lock_kind;

struct marker {
    std::string_view text;
    contender_name means;
};
constexpr std::array<marker, 7> markers{{
    {"-lock-", {directory_kind::mutex, lock_kind::exclusive}},
    {"__lock__", {directory_kind::mutex, lock_kind::exclusive}},       // kazoo's, also of its writers
    {"__rlock__", {directory_kind::read_write, lock_kind::shared}},    // kazoo's
    {"__READ__", {directory_kind::read_write, lock_kind::shared}},
    {"__WRIT__", {directory_kind::read_write, lock_kind::exclusive}},
    {"-latch-", {directory_kind::election, lock_kind::exclusive}},
    {"-lease-", {directory_kind::semaphore, lock_kind::shared}},
}};

// What a server appends: ten digits, or, after 2^31 nodes, a '-' and ten.
bool is_sequence(std::string_view text) {
    if (text.size() == 11 && text.front() == '-') text.remove_prefix(1);
    return text.size() == 10 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

nlohmann::ordered_json parse_who(const std::string& data) {
    auto who = nlohmann::ordered_json::parse(data, nullptr, false);
    return who.is_object() ? who : nlohmann::ordered_json();
}

contender contender_of(std::string path, zkasio::node_data node, lock_kind side) {
    contender c;
    c.path = std::move(path);
    c.side = side;
    c.session_id = node.stat.ephemeral_owner;
    c.created_ms = node.stat.ctime;
    c.token = node.stat.czxid;
    c.data = std::move(node.data);
    c.who = parse_who(c.data);
    return c;
}

// The node, unless it has gone meanwhile.
asio::awaitable<std::optional<zkasio::node_data>> get_if_there(zkasio::client zk, std::string path) {
    try {
        co_return co_await zk.get(path);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;
    }
    co_return std::nullopt;
}

asio::awaitable<std::vector<std::string>> children_if_there(zkasio::client zk, std::string path) {
    try {
        zkasio::node_children found = co_await zk.children(path);
        co_return std::move(found.names);
    } catch (const zkasio::error& e) {
        if (e.code() != zkasio::zk_errc::no_node) throw;
    }
    co_return std::vector<std::string>();
}

// Those of one directory, in the order in which they came: that is the order of their transactions.
asio::awaitable<void> read_contenders(zkasio::client zk, std::string directory, lock_view& view) {
    const std::vector<std::string> names = co_await children_if_there(zk, directory);
    std::vector<contender> found;
    for (const std::string& name : names) {
        const auto what = classify(name);
        if (!what) {
            view.foreign.push_back(name);
            continue;
        }
        const std::string path = zkasio::join_path(directory, name);
        std::optional<zkasio::node_data> node = co_await get_if_there(zk, path);
        if (!node) continue;
        found.push_back(contender_of(path, std::move(*node), what->side));
        if (view.kind == directory_kind::empty || what->kind == directory_kind::read_write) view.kind = what->kind;
    }
    std::sort(found.begin(), found.end(), [](const contender& a, const contender& b) { return a.token < b.token; });
    view.contenders.insert(view.contenders.end(), found.begin(), found.end());
}

// A reader holds it together with all readers in front of the first writer.
void mark_holders(lock_view& v) {
    if (v.contenders.empty()) return;
    v.contenders.front().holds = true;
    if (v.contenders.front().side != lock_kind::shared) return;
    for (contender& c : v.contenders) {
        if (c.side != lock_kind::shared) return;
        c.holds = true;
    }
}

constexpr const char* revoke_message = "__REVOKE__";  // what zkasio::revoke() writes over the data of a lock's node

// In an election it is written in the data of the directory instead, as is what a leader proclaims.
void mark_noted(lock_view& v, const zkasio::directory_note& note) {
    for (contender& c : v.contenders) {
        const std::string_view name = zkasio::node_name(c.path);
        c.revoke_requested = c.data == revoke_message || note.revokes(name);
        c.proclaimed = note.proclaimed_by(name);
    }
}

bool is_semaphore(const std::vector<std::string>& children) {
    return children.size() <= 2 && std::find(children.begin(), children.end(), "leases") != children.end();
}

// Who is first in `locks` creates a lease, and then waits until there are no more leases than permits. So the newest
// lease may be of one who waits: it is, while the first one's turn is not over.
bool waits(const contender& newest_lease, const contender& first) noexcept {
    return newest_lease.session_id == first.session_id && newest_lease.token > first.token;
}

asio::awaitable<void> read_semaphore(zkasio::client zk, lock_view& v) {
    lock_view queue, leases;
    // In this order: who is granted a permit in between is seen at least once.
    co_await read_contenders(zk, v.path + "/locks", queue);
    co_await read_contenders(zk, v.path + "/leases", leases);
    const bool one_waits = !queue.contenders.empty() && !leases.contenders.empty() &&
                           waits(leases.contenders.back(), queue.contenders.front());
    if (one_waits) leases.contenders.pop_back();
    for (contender& c : leases.contenders) c.holds = true;
    for (lock_view* const part : {&leases, &queue}) {
        std::move(part->contenders.begin(), part->contenders.end(), std::back_inserter(v.contenders));
        std::move(part->foreign.begin(), part->foreign.end(), std::back_inserter(v.foreign));
    }
    v.kind = directory_kind::semaphore;
}

}  // namespace

std::string_view to_string(directory_kind k) noexcept {
    switch (k) {
        case directory_kind::empty: return "free";
        case directory_kind::mutex: return "mutex";
        case directory_kind::read_write: return "read-write lock";
        case directory_kind::election: return "election";
        case directory_kind::semaphore: return "semaphore";
        case directory_kind::flag: return "lock on one node";
        case directory_kind::foreign: return "no lock";
    }
    return "";
}

std::optional<contender_name> classify(std::string_view name) {
    for (const marker& m : markers) {
        const auto at = name.rfind(m.text);
        if (at != std::string_view::npos && is_sequence(name.substr(at + m.text.size()))) return m.means;
    }
    return std::nullopt;
}

std::vector<contender> lock_view::holders() const {
    std::vector<contender> found;
    for (const contender& c : contenders)
        if (c.holds) found.push_back(c);
    return found;
}

asio::awaitable<lock_view> read_lock(zkasio::client zk, std::string path) {
    lock_view v;
    v.path = path;
    std::optional<zkasio::node_data> node = co_await get_if_there(zk, path);
    v.exists = node.has_value();
    if (!node) co_return v;
    if (node->stat.ephemeral_owner != 0) {
        v.kind = directory_kind::flag;
        v.contenders.push_back(contender_of(path, std::move(*node), lock_kind::exclusive));
        mark_holders(v);
        mark_noted(v, zkasio::directory_note());
        co_return v;
    }
    const zkasio::directory_note note = zkasio::directory_note::parse(node->data);
    const std::vector<std::string> children = co_await children_if_there(zk, path);
    if (is_semaphore(children)) {
        co_await read_semaphore(zk, v);
        mark_noted(v, note);
        co_return v;
    }
    co_await read_contenders(zk, path, v);
    mark_holders(v);
    mark_noted(v, note);
    if (v.contenders.empty() && !v.foreign.empty()) v.kind = directory_kind::foreign;
    co_return v;
}

}  // namespace zklock
