#pragma once

#include "http.hpp"
#include "routes.hpp"

namespace order_server {

/// The page and its files, and /live: its state as server-sent events, of whichever instance it asks, for all of them.
/// With --demo pages of the other instances may ask, too: a page goes on when its instance has ended.
///
/// Costs something only while somebody looks: then there is a cache of all nodes, one for all viewers.
void add_page_routes(http_router& to, handlers& with);

}  // namespace order_server
