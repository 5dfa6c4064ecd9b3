#pragma once

#include <zkasio/detail/base/view_root.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/detail/seam/request.hpp>

#include <string>

/// Where the paths of a view (client::rooted()) become those of the client itself, and the other way round: requests
/// before they leave the handles, replies before they become values and errors. Everything below, from request_table to
/// the backend, and everything that the views of a client share, has whole paths only.
namespace zkasio::detail {

/// Puts the root of the view in front of the paths of the request.
void put_root_in_front(const std::string& root, request& what);
inline void make_whole(view_root root, request& what) {
    if (root) put_root_in_front(*root, what);
}

/// The paths of the nodes that the request has created, as the view has them.
void take_root_away(const std::string& root, reply& r);
inline void make_shown(view_root root, reply& r) {
    if (root) take_root_away(*root, r);
}

}  // namespace zkasio::detail
