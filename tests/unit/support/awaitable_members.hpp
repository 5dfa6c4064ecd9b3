#pragma once

#include "support/source_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace zkasio::test {

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// What stands between "protected:" or "private:" and the end of the class is no public member.
inline std::string without_protected(std::string text) {
    for (const std::string begin : {"\nprotected:\n", "\nprivate:\n"})
        for (auto from = text.find(begin); from != std::string::npos; from = text.find(begin, from)) {
            const auto to = text.find("\n};\n", from);
            text.erase(from, to == std::string::npos ? to : to - from);
        }
    return text;
}

/// The public members that return an awaitable, as the headers declare them: "client.hpp connected". For tests that
/// have to try each. @param room the headers of one directory only.
inline std::vector<std::string> public_awaitable_members(const std::string& room = "") {
    const std::filesystem::path root = source_dir();
    const std::regex declaration(R"(\n +(?:virtual )?asio::awaitable<[^(]*> (\w+)\()");
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "lib/zkasio" / room)) {
        const std::filesystem::path& path = entry.path();
        if (path.extension() != ".hpp" || path.string().find("/detail/") != std::string::npos) continue;
        if (path.filename() == "sasl_mechanism.hpp") continue;  // its members are the user's, and called by the library
        const std::string text = without_protected(read_file(path));
        for (std::sregex_iterator m(text.begin(), text.end(), declaration), end; m != end; ++m)
            found.push_back(path.filename().string() + ' ' + (*m)[1].str());
    }
    return found;
}

}  // namespace zkasio::test
