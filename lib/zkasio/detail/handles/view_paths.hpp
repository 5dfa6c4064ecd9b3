#pragma once

#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/requests/command.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/detail/seam/request.hpp>

/// Where the paths of a view (client::rooted()) become those of the client itself, and the other way round: requests
/// before they leave the handles, replies before they become values and errors. Everything below, from request_table to
/// the backend, and everything that the views of a client share, has whole paths only.
namespace zkasio::detail {

/// Puts the root of the view in front of the paths of the command, once: a command that is sent again has them already.
void put_root_in_front(core& on, view_id view, command& c);
inline void make_whole(core& on, view_id view, command& c) {
    if (view != 0 && !c.is_whole) put_root_in_front(on, view, c);
}

/// The paths of the nodes that the request has created, as the view has them.
void take_root_away(core& on, view_id view, reply& r);
inline void make_shown(core& on, view_id view, reply& r) {
    if (view != 0) take_root_away(on, view, r);
}

}  // namespace zkasio::detail
