#pragma once

#include "http.hpp"
#include "routes.hpp"

namespace order_server {

/// What the page's buttons do, with --demo only: POST /demo/processes/PID/kill, .../pause, .../resume, for order
/// servers of the same process group, that is, of the script that has started this one; and POST
/// /demo/requests/NUMBER/cancel, for a request of this instance. Refused to pages of other servers than the instances,
/// see make_page_known().
void add_demo_routes(http_router& to, handlers& with);

/// Tells the other instances where this one's page is. A persistent node says so: the page's buttons also work while
/// the instance that has sent it is paused, and its session over.
asio::awaitable<void> make_page_known(zkasio::client zk, const options& how);

}  // namespace order_server
