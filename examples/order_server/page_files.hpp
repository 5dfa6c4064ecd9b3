#pragma once

#include <span>
#include <string_view>

namespace order_server {

/// A file of page/, as it was when this was built: see embed.cmake.
struct page_file {
    std::string_view name, content;
};

std::span<const page_file> page_files() noexcept;

}  // namespace order_server
