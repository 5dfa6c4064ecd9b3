#pragma once

#include <zkasio/export.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace zkasio {

/// The sequence number at the end of the name of a sequential node. For writers of recipes.
struct sequence_suffix {
    std::string_view digits;  ///< as written in the name: "%010d" of a signed
                              ///< number, so 2^31 nodes later with a '-'
    std::int32_t number = 0;
};

/// The number behind the last `marker` in `name` ("_c_<uuid>-lock-0000000012" with "lock-" is 12). Nothing if the name
/// does not end so.
ZKASIO_EXPORT std::optional<sequence_suffix> sequence_behind(std::string_view name, std::string_view marker) noexcept;

}  // namespace zkasio
