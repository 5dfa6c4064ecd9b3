#include "lock_view.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace zklock {
namespace {

nlohmann::ordered_json parse_who(const std::string& data) {
    auto who = nlohmann::ordered_json::parse(data, nullptr, false);
    return who.is_object() ? who : nlohmann::ordered_json();
}

contender as_contender(zkasio::contender_info info) {
    contender c;
    c.path = std::move(info.path);
    c.side = info.kind;
    c.holds = info.holds;
    c.session_id = info.session_id;
    c.created_ms = info.created_ms;
    c.token = info.token.value();
    c.data = std::move(info.data);
    c.who = parse_who(c.data);
    c.revoke_requested = info.revoke_requested;
    c.proclaimed = std::move(info.proclaimed);
    return c;
}

}  // namespace

std::string_view name_of(directory_kind k) noexcept {
    switch (k) {
        case directory_kind::empty: return "free";
        case directory_kind::mutex: return "mutex";
        case directory_kind::shared_mutex: return "read-write lock";
        case directory_kind::election: return "election";
        case directory_kind::semaphore: return "semaphore";
        case directory_kind::single_node: return "lock on one node";
        case directory_kind::other: return "no lock";
    }
    return "";
}

std::vector<contender> lock_view::holders() const {
    std::vector<contender> found;
    for (const contender& c : contenders)
        if (c.holds) found.push_back(c);
    return found;
}

bool looks_the_same(const lock_view& a, const lock_view& b) {
    const auto seen = [](const contender& c) {
        return std::tie(c.path, c.holds, c.session_id, c.token, c.data, c.revoke_requested, c.proclaimed);
    };
    const auto same = [&](const contender& x, const contender& y) { return seen(x) == seen(y); };
    return a.exists == b.exists && a.kind == b.kind && a.foreign == b.foreign &&
           std::equal(a.contenders.begin(), a.contenders.end(), b.contenders.begin(), b.contenders.end(), same);
}

asio::awaitable<lock_view> read_lock(zkasio::client zk, std::string path) {
    zkasio::lock_listing list = co_await zkasio::list_lock(zk, std::move(path));
    lock_view v;
    v.path = std::move(list.path);
    v.exists = list.exists;
    v.kind = list.kind;
    v.foreign = std::move(list.foreign);
    for (zkasio::contender_info& c : list.contenders) v.contenders.push_back(as_contender(std::move(c)));
    co_return v;
}

}  // namespace zklock
