#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace zkasio {

/// What the options of all caches have in common. @tparam Options the cache's own, which the setters return.
template <class Options>
class cache_options {
public:
    /// How many changes are remembered at most for readers that are behind, see cache_update::look_again (1024). At
    /// least 1. What all readers of changes() have read is not remembered, nor anything when there is none.
    Options& remembered_changes(std::size_t n) { remembered_ = n; return self(); }
    /// How many bytes these changes may have, most of which are data of nodes before and after them (16 MiB).
    Options& remembered_bytes(std::size_t n) { bytes_ = n; return self(); }
    /// How many reads may be under way at a time (256). At least 1.
    Options& reads_at_a_time(std::size_t n) { reads_ = n; return self(); }

    std::size_t remembered_changes() const noexcept { return remembered_; }
    std::size_t remembered_bytes() const noexcept { return bytes_; }
    std::size_t reads_at_a_time() const noexcept { return reads_; }

protected:
    cache_options() {}
    Options& self() noexcept { return static_cast<Options&>(*this); }

private:
    std::size_t remembered_ = 1024, bytes_ = 16 * 1024 * 1024, reads_ = 256;
};

}  // namespace zkasio
