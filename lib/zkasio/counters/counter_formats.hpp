#pragma once

#include <zkasio/config/config_format.hpp>
#include <zkasio/export.hpp>

#include <cstdint>

/// How other libraries write numbers into nodes: formats for config_value and atomic_counter. A text that is no such
/// number is refused, and nothing is written over it.
namespace zkasio {

/// Curator's SharedCount, and kazoo's Counter with support_curator=True: 4 bytes, the highest first. Empty data: 0.
ZKASIO_EXPORT config_format<std::int32_t> curator_count();

/// Curator's DistributedAtomicLong: 8 bytes, the highest first. Empty data: 0.
ZKASIO_EXPORT config_format<std::int64_t> curator_long();

/// kazoo's Counter with an int: decimal digits. Empty data: 0. A kazoo Counter of floating-point numbers writes "1.0",
/// which is refused.
ZKASIO_EXPORT config_format<std::int64_t> kazoo_counter();

}  // namespace zkasio
