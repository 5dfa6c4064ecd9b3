#pragma once

#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/transaction.hpp>

/// Conversions between the types of the backend and those of users.
namespace zkasio::detail {

node_data take_data(reply&& r);
node_children take_children(reply&& r);
created take_created(reply&& r);
node_stat take_stat(reply&& r);
std::optional<node_stat> take_stat_if_any(reply&& r);  ///< nothing for zk_errc::no_node
operations::acl_and_stat take_acl(reply&& r);
inline void take_nothing(reply&&) {}

/// Throws zkasio::error that names the step which was refused.
/// @param checks the first `checks` steps are not the caller's own: they are not counted, and have no result.
std::vector<step_result> take_results(reply&& r, const transaction& steps, const std::string& operation,
                                      std::size_t checks);

create_request make_create(std::string path, std::string data, const create_options& o);
/// Throws zkasio::error for steps that a transaction cannot have.
multi_request make_multi(const transaction& steps, const std::string& operation);

}  // namespace zkasio::detail
