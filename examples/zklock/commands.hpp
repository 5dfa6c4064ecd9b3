#pragma once

#include "options.hpp"
#include "session.hpp"

#include <zkasio/asio_version.hpp>

#include <asio/awaitable.hpp>

/// One function for each command of zklock. They return the exit code.
namespace zklock {

asio::awaitable<int> run_command(session s, run_options o);
asio::awaitable<int> elect(session s, run_options o);

asio::awaitable<int> show_locks(session s, locks_options o);
asio::awaitable<int> break_lock(session s, locks_options o);
asio::awaitable<int> revoke_lock(session s, locks_options o);

asio::awaitable<int> get_node(session s, node_options o);
asio::awaitable<int> set_node(session s, node_options o);
asio::awaitable<int> create_node(session s, node_options o);
asio::awaitable<int> remove_node(session s, node_options o);
asio::awaitable<int> list_children(session s, node_options o);
asio::awaitable<int> show_stat(session s, node_options o);
asio::awaitable<int> show_acl(session s, node_options o);
asio::awaitable<int> watch_node(session s, node_options o);
asio::awaitable<int> show_tree(session s, node_options o);
asio::awaitable<int> show_identities(session s, node_options o);

asio::awaitable<int> use_barrier(session s, barrier_options o);
asio::awaitable<int> use_counter(session s, counter_options o);
asio::awaitable<int> use_queue(session s, queue_options o);

asio::awaitable<int> examine(session s, doctor_options o, connection_options c);
asio::awaitable<int> show_cost(session s, cost_options o, connection_options c);
asio::awaitable<int> bench(session s, bench_options o, connection_options c);

}  // namespace zklock
