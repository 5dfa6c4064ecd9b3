#pragma once

#include <string>
#include <vector>

namespace zkasio::test {

using texts = std::vector<std::string>;

}  // namespace zkasio::test
