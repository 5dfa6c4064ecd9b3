#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// Between the locks and a view of their client, see client::rooted(). The bookkeeping of a lock (its queue, its
/// cohort, its numbers) is shared by all views. So each kind of lock runs on the client itself, with whole paths, and
/// these functions, which lockable calls, translate what its user sees: guards, errors and positions. Without a view,
/// they return what they are given.
namespace zkasio::lock_detail {

/// The implementation of in_view(), for a view.
template <class Result>
asio::awaitable<Result> translated(client zk, asio::awaitable<Result> acquiring);
lock_attempt translated(client zk, lock_attempt attempt);
acquire_options translated(const client& zk, acquire_options how);

/// @param acquiring of the client itself; its result is a lock_guard, an optional or a vector of them.
template <class Result>
asio::awaitable<Result> in_view(const client& zk, asio::awaitable<Result> acquiring) {
    return zk.is_rooted() ? translated(zk, std::move(acquiring)) : std::move(acquiring);
}
inline lock_attempt in_view(const client& zk, lock_attempt attempt) {
    return zk.is_rooted() ? translated(zk, std::move(attempt)) : std::move(attempt);
}
/// The options of a user of the view, for the client itself.
inline acquire_options for_client(const client& zk, acquire_options how) {
    return zk.is_rooted() && how.on_position() ? translated(zk, std::move(how)) : std::move(how);
}
/// The claim behind one that in_view() has made; any other claim itself.
std::shared_ptr<lock_claim> claim_of_client(std::shared_ptr<lock_claim> claim);

}  // namespace zkasio::lock_detail
