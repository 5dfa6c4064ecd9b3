#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace zkasio {

/// The options that all caches share. @tparam Options the options class of the cache, which the setters return.
template <class Options>
class cache_options {
public:
    /// The maximum number of changes that are remembered for slow readers, see cache_update::look_again (1024). At
    /// least 1. A change that all readers of changes() have read is forgotten; without a reader, no change is
    /// remembered.
    Options& remembered_changes(std::size_t n) { remembered_ = n; return self(); }
    /// The maximum size of these changes in bytes: mostly node data before and after the changes (16 MiB).
    Options& remembered_bytes(std::size_t n) { bytes_ = n; return self(); }
    /// The maximum number of reads under way at a time (256). At least 1.
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
