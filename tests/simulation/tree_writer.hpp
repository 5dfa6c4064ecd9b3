#pragma once

#include "simulation/simulation.hpp"

#include <asio/awaitable.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace zkasio::test {

/// Changes a tree below "/t" at random: an operator, whose changes are carried out at once, and clients, whose
/// ephemeral nodes go with their sessions.
class tree_writer {
public:
    explicit tree_writer(simulation& s) : s_(s) {}

    /// One change, or a few that belong together.
    void change();
    /// Many nodes beside each other, of which the changes that follow choose, too.
    void make_crowd(std::size_t nodes);
    /// So many changes, in bursts.
    asio::awaitable<void> work(std::size_t changes);
    /// Of a client, which may fail.
    asio::awaitable<void> work_as(int client, std::size_t changes);

    /// Of a node that there may be.
    std::string random_path();

private:
    std::string next_data();
    asio::awaitable<void> change_as(client zk);
    void create(const std::string& path);
    void carry_out(std::vector<detail::multi_op> ops, bool together);
    std::vector<detail::multi_op> removal_of(const std::string& path) const;

    simulation& s_;
    std::size_t crowd_ = 0, writes_ = 0;
};

}  // namespace zkasio::test
