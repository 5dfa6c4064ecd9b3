#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::test {

using texts = std::vector<std::string>;

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// What `call()` throws, in words.
template <class Call>
std::string failure_of(Call call) {
    try {
        call();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "nothing was thrown";
}

}  // namespace zkasio::test
