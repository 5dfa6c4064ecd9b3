// The code that README shows is code that is compiled and run: the snippets of programs in examples/. (The pages of
// docs/ have no code of their own: scripts/docs/pages.py.)

#include "support/catch.hpp"
#include "support/source_dir.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string text_of(const std::string& file) {
    std::ifstream in(source_dir() + "/" + file);
    INFO(file);
    REQUIRE(in);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

// What stands between the lines "// [NAME]" and "// [/NAME]".
std::string snippet(const std::string& file, const std::string& name) {
    const std::string text = text_of(file), begin = "// [" + name + "]\n", end = "// [/" + name + "]\n";
    const auto from = text.find(begin), to = text.find(end);
    INFO(file << " has no snippet " << name);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    return text.substr(from + begin.size(), to - from - begin.size());
}

struct block {
    std::string comment;  // the line in front of it: "<!-- FILE: NAME -->"
    std::string code;
};

std::vector<block> cpp_blocks(const std::string& page) {
    std::istringstream lines(text_of(page));
    std::vector<block> found;
    std::string line, before;
    while (std::getline(lines, line)) {
        if (line == "```cpp") {
            block b{before, {}};
            while (std::getline(lines, line) && line != "```") b.code += line + "\n";
            found.push_back(std::move(b));
        }
        before = line;
    }
    return found;
}

void check_page(const std::string& page, std::size_t blocks) {
    const auto found = cpp_blocks(page);
    CHECK(found.size() >= blocks);
    for (const block& b : found) {
        const std::string prefix = "<!-- ", suffix = " -->";
        INFO(page << ", the block that begins with: " << b.code.substr(0, b.code.find('\n')));
        REQUIRE(b.comment.rfind(prefix, 0) == 0);
        const auto colon = b.comment.find(": ");
        REQUIRE(colon != std::string::npos);
        const std::string file = b.comment.substr(prefix.size(), colon - prefix.size());
        const std::string name = b.comment.substr(colon + 2, b.comment.size() - suffix.size() - colon - 2);
        CHECK(b.code == snippet(file, name));
    }
}

}  // namespace

TEST_CASE("README.md shows what the examples do") { check_page("README.md", 1); }
