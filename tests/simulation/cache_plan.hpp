#pragma once

#include "simulation/cache_witness.hpp"
#include "simulation/simulation.hpp"
#include "simulation/tree_writer.hpp"

#include <zkasio/cache/cache.hpp>

#include <cstddef>
#include <memory>

namespace zkasio::test {

/// A cache of a random kind, with random options.
class cache_plan {
public:
    cache_plan(simulation& s, tree_writer& where);

    std::shared_ptr<const cache> make(const client& zk) const;

    cache_scope scope;
    std::size_t remembered = 1024, reads = 256;

private:
    enum class cache_kind : std::size_t {
        tree,
        children,
        node
    };
    cache_kind kind_;
};

}  // namespace zkasio::test
