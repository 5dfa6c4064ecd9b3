#include <zkasio/detail/handles/until_connected.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/results.hpp>

#include <utility>

namespace zkasio::detail {

asio::awaitable<void> until_connected(core_ptr c, std::string operation, std::string path) {
    if (there(c, operation, path)->state() == session_state::connected) co_return;
    reply r;
    co_await wait_connected(c, r);
    const bool is_about_servers = path.empty() && operation == "connect";
    throw_if_failed(r, operation, is_about_servers ? c->server_names() : path);
}

asio::awaitable<session> connected_session(core_ptr c, view_root root, std::string operation, std::string path) {
    co_await until_connected(c, std::move(operation), std::move(path));
    co_return access::make<session>(c, c->current_session_record(), root);
}

}  // namespace zkasio::detail
