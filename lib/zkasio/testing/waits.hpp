#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/export.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Waits of tests, with a time limit: by watches, without polling or sleeping. For real servers and for a
/// fake_ensemble.
///
/// All waits continue through lost connections and expired sessions, and leave no watch behind.
/// *Fails with* errc::timed_out after `within`: "until_empty /locks/a: timed out (after 5 s; it has 2 children: x-1,
/// x-2)"; with errc::invalid_path; with errc::client_closed.
/// *Cancellation* ends the wait.
namespace zkasio::testing {

inline constexpr std::chrono::seconds patience{20};

/// Waits until the node exists.
ZKASIO_EXPORT asio::awaitable<void> until_exists(client zk, std::string path,
                                                 any_duration within = patience);
/// Waits until there is no such node.
ZKASIO_EXPORT asio::awaitable<void> until_gone(client zk, std::string path, any_duration within = patience);
/// Waits until the node has no children, or does not exist.
ZKASIO_EXPORT asio::awaitable<void> until_empty(client zk, std::string path,
                                                any_duration within = patience);

/// Ends the session of `victim` at the servers, as an expiry does: another client takes the session over and closes it.
/// For real servers; for a client of a fake_ensemble there is fake_ensemble::expire().
/// *Completes when* a server has confirmed that the session is over; the victim may not have learnt of it yet.
ZKASIO_EXPORT asio::awaitable<void> expire_session(client victim, any_duration within = patience);

}  // namespace zkasio::testing

namespace zkasio::testing_detail {

using children_condition = std::function<bool(const std::vector<std::string>&)>;
ZKASIO_EXPORT asio::awaitable<void> until_children_hold(client zk, std::string path, children_condition holds,
                                                        any_duration within);

}  // namespace zkasio::testing_detail

namespace zkasio::testing {

/// Waits until `holds(names)` is true. `names` are those of the node's children, sorted; empty if the node does not
/// exist. An exception of `holds` ends the wait. With g++ 12 a lambda whose captures have destructors needs a name.
template <class Condition>
asio::awaitable<void> until_children(client zk, std::string path, Condition&& holds,
                                     any_duration within = patience) {
    using function = testing_detail::children_condition;
    return testing_detail::until_children_hold(
        std::move(zk), std::move(path), zkasio::detail::safe_function<function>(std::forward<Condition>(holds)),
        within);
}

}  // namespace zkasio::testing
