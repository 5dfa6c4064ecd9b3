#pragma once

#include <zkasio/testing/detail/sim/sim_ensemble.hpp>
#include <zkasio/testing/detail/virtual_clock.hpp>

namespace zkasio::test {

// The ensemble in memory is that of zkasio::testing; here its single steps are chosen.
using testing_detail::sim_change;
using testing_detail::sim_ensemble;
using testing_detail::sim_node;
using testing_detail::sim_tree;
using testing_detail::sim_txn;
using testing_detail::virtual_clock;

}  // namespace zkasio::test
