#pragma once

#include <zkasio/cache/tree_view.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace order_server {

/// What the page shows, out of what a cache of the root knows: all instances, who leads, and the queue of each lock. A
/// pure function.
///
/// {"instances": [{"name", "url", "session", "told": the payload of announce.cpp}],
///  "leader": {"name", "session", "token"}, or null,
///  "locks": [{"name", "queue": [{"who", "session", "token", "kind": "alone" | "shared", "since"}]}],
///  "current": whether a connection stands}
///
/// The queues are in order. Sessions are in hexadecimal, as servers write them; the token is what the lock's guard has
/// or will have; `since` is in milliseconds since 1970, by the server's clock.
nlohmann::json live_state(const zkasio::tree_view& nodes, const std::string& root);

}  // namespace order_server
