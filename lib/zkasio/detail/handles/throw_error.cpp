#include <zkasio/detail/handles/throw_error.hpp>

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/connection/connection_pacing.hpp>

#include <asio/error.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>

namespace zkasio::detail {

void throw_if_failed(const reply& r, std::string_view operation, std::string_view path) {
    if (!r.code) return;
    if (r.hung_up_at > 0) throw error::hung_up_at(operation, path, r.hung_up_at, r.sent);
    const bool says_why = r.code == errc::not_connected || r.code == zk_errc::no_node ||
                          r.code == zk_errc::auth_failed || r.code == errc::too_many_ephemerals ||
                          r.code == asio::error::operation_aborted;
    std::string_view hint = says_why ? std::string_view(r.data) : "";
    if (operation == "create" && r.code == zk_errc::no_node && hint.empty())
        hint = "the parent does not exist: create it, or ask for create_options::parents()";
    if (r.code == zk_errc::not_read_only)
        hint = "a client with client_options::read_only() only reads: use one without it";
    if (r.code == zk_errc::no_auth) hint = "the ACL does not allow it to this client: see get_acl() and add_auth()";
    if (r.code == zk_errc::invalid_acl) hint = "an unknown scheme, a malformed id, or auth: without add_auth()";
    throw error(r.code, operation, path, hint, r.sent);
}

void throw_if_failed(const reply& r) {
    if (!r.code) return;
    if (!r.asked) return throw_if_failed(r, {}, {});
    throw_if_failed(r, operation_name(*r.asked), path_of(*r.asked));
}

asio::awaitable<void> pause_after_hang_up(reply& r) {
    using std::chrono::milliseconds;
    constexpr milliseconds first(50), longest(1000);
    const int doublings = std::clamp(r.hung_up_times - connection_pacing::many, 0, 10);
    const auto pause = std::min(first * (1 << doublings), longest) * (1 + jitter() / 2);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(std::chrono::duration_cast<boot_clock::duration>(pause));
    std::error_code cancelled;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (!cancelled) co_return;
    r.hung_up_at = 0;
    r.code = cancelled;
}

const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation, std::string_view path) {
    if (!c) throw error(errc::invalid_argument, operation, path, "this object was moved from");
    return c;
}

}  // namespace zkasio::detail
