#pragma once

#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string_view>

namespace zkasio::detail {

class core;

/// Throws zkasio::error when the reply is an error: with the operation, the path, and advice where there is any.
void throw_if_failed(const reply& r, std::string_view operation, std::string_view path);

/// Returns `c`. Throws errc::invalid_argument if `c` is null, as in an object that was moved from.
const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation,
                                   std::string_view path = {});

/// Of a caller whose request ends one connection after the other, and who would try again at once: see
/// connection_pacing::pause_of_request(). A cancellation replaces r.code.
asio::awaitable<void> pause_after_hang_up(reply& r);

}  // namespace zkasio::detail

/// Conversions between the types of the backend and those of users.
namespace zkasio::detail {

node_data take_data(reply&& r);
node_children take_children(reply&& r);
created take_created(reply&& r);
node_stat take_stat(reply&& r);
std::optional<node_stat> take_stat_if_any(reply&& r);  ///< nothing for zk_errc::no_node
operations::acl_and_stat take_acl(reply&& r);
std::vector<read_result> take_reads(reply&& r);
std::vector<acl_id> take_identities(reply&& r);
std::vector<std::string> take_paths(reply&& r);
std::size_t take_count(reply&& r);
inline void take_nothing(reply&&) {}

/// Throws zkasio::error that names the step which was refused.
/// @param checks the first `checks` steps are not the caller's own: they are not counted, and have no result.
std::vector<step_result> take_results(reply&& r, const transaction& steps, const std::string& operation,
                                      std::size_t checks);

create_request make_create(std::string path, std::string data, const create_options& o);
/// Throws zkasio::error for steps that a transaction cannot have.
multi_request make_multi(const transaction& steps, const std::string& operation);
multi_read_request make_multi_read(const read_list& nodes);

}  // namespace zkasio::detail
