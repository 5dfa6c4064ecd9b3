#include "live_state.hpp"

#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/printable.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace order_server {

namespace {

using nlohmann::json;

struct contender {
    std::string name;  ///< of its node
    zkasio::cached_node node;

    std::int64_t token() const noexcept { return node.stat().czxid; }
};

// The contenders of a lock, first come, first served. (The order of their tokens is that of their sequence numbers.)
std::vector<contender> queue_of(const zkasio::tree_view& nodes, const std::string& directory) {
    std::vector<contender> queue;
    nodes.for_each_child(directory, [&](const std::string& name, const zkasio::cached_node& node) {
        queue.push_back({name, node});
    });
    std::sort(queue.begin(), queue.end(),
              [](const contender& a, const contender& b) { return a.token() < b.token(); });
    return queue;
}

json json_of(const contender& c) {
    static const std::string reader = zkasio::name_scheme::curator().read_marker();
    json j;
    j["who"] = c.node.data();
    j["session"] = zkasio::session_id_text(c.node.stat().ephemeral_owner);
    j["token"] = c.token();
    j["kind"] = c.name.find(reader) == std::string::npos ? "alone" : "shared";
    j["since"] = c.node.stat().ctime;
    return j;
}

void add_lock(json& locks, const zkasio::tree_view& nodes, const std::string& directory, const std::string& name) {
    json lock;
    lock["name"] = name;
    json queue = json::array();
    for (const contender& c : queue_of(nodes, directory)) queue.push_back(json_of(c));
    if (queue.empty()) return;
    lock["queue"] = std::move(queue);
    locks.push_back(std::move(lock));
}

json locks_of(const zkasio::tree_view& nodes, const std::string& root) {
    json locks = json::array();
    add_lock(locks, nodes, root + "/book", "the book");
    for (const std::string& id : nodes.names(root + "/locks")) add_lock(locks, nodes, root + "/locks/" + id, id);
    return locks;
}

json instances_of(const zkasio::tree_view& nodes, const std::string& root) {
    json instances = json::array();
    const auto add = [&](const std::string& name, const zkasio::cached_node& node) {
        try {
            const auto is = zkasio::service_instance::from_json(node.data());
            json j;
            j["name"] = name;
            j["url"] = "http://" + is.address() + ":" + std::to_string(is.port().value_or(0));
            j["session"] = zkasio::session_id_text(node.stat().ephemeral_owner);
            j["told"] = json::parse(is.payload(), nullptr, false);
            if (j["told"].is_object()) instances.push_back(std::move(j));
        } catch (const zkasio::error&) {  // somebody has written what is no instance
        }
    };
    nodes.for_each_child(root + "/services/orders", add);
    return instances;
}

json leader_of(const zkasio::tree_view& nodes, const std::string& root) {
    const std::vector<contender> candidates = queue_of(nodes, root + "/leader");
    if (candidates.empty()) return nullptr;
    const contender& first = candidates.front();
    json j;
    j["name"] = first.node.data();
    j["session"] = zkasio::session_id_text(first.node.stat().ephemeral_owner);
    j["token"] = first.token();
    return j;
}

}  // namespace

json live_state(const zkasio::tree_view& nodes, const std::string& root) {
    json j;
    j["current"] = nodes.current();
    j["instances"] = instances_of(nodes, root);
    j["leader"] = leader_of(nodes, root);
    j["locks"] = locks_of(nodes, root);
    return j;
}

}  // namespace order_server
