#pragma once

#include "support/test_client.hpp"

#include <zkasio/discovery/provider.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

inline service_instance instance_of(const std::string& name, const std::string& id, std::uint16_t port = 80) {
    service_instance is(name);
    is.id(id).address("10.0.0.1").port(port);
    return is;
}

// Writes it as somebody else would.
inline asio::awaitable<void> write_instance(client zk, std::string dir, service_instance is) {
    create_options parents;
    parents.parents(missing_parents::create_persistent);
    co_await zk.create_or_set(dir + "/" + is.name() + "/" + is.id(), is.to_json(), parents);
}

inline std::set<std::string> ids_in(const service_view& view) {
    std::set<std::string> ids;
    for (const service_instance& is : view.instances()) ids.insert(is.id());
    return ids;
}

// The ids of the next `n` that are picked, while none of them is given back.
inline std::multiset<std::string> picked_ids(const provider& from, int n) {
    std::multiset<std::string> ids;
    std::vector<picked> all;
    for (int i = 0; i < n; ++i) {
        all.push_back(from.try_pick());
        ids.insert(all.back() ? all.back()->id() : "none");
    }
    return ids;
}

template <class Condition>
asio::awaitable<service_view> until_seen(const provider& from, Condition wanted) {
    service_view view = from.view();
    while (!wanted(view)) view = co_await from.changed(view);
    co_return view;
}

inline asio::awaitable<service_view> until_ids(const provider& from, std::set<std::string> wanted) {
    const auto equal = [&](const service_view& view) { return ids_in(view) == wanted && view.current(); };
    co_return co_await until_seen(from, equal);
}

inline std::set<std::string> set_of(const std::string& a) {
    std::set<std::string> all;
    all.insert(a);
    return all;
}
inline std::set<std::string> set_of(const std::string& a, const std::string& b) {
    std::set<std::string> all = set_of(a);
    all.insert(b);
    return all;
}

}  // namespace zkasio::test
