// The rules of docs/lock-queue.md, "The grant rules", the places that carry them out, and the tests that fail without
// them.

#include "support/catch.hpp"
#include "support/source_dir.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path checkout = source_dir();

std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    INFO(file);
    REQUIRE(in);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::string texts_below(const fs::path& directory) {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
        if (entry.is_regular_file()) all += text_of(entry.path());
    return all;
}

// What the first group of `pattern` matches.
std::set<std::string> matches(const std::string& text, const std::string& pattern) {
    const std::regex expression(pattern);
    std::set<std::string> all;
    for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) all.insert(it->str(1));
    return all;
}

std::string rules() {
    const std::string page = text_of(checkout / "docs/lock-queue.md");
    const auto from = page.find("## The grant rules\n");
    REQUIRE(from != std::string::npos);
    const std::string section = page.substr(from, page.find("\n## ", from + 1) - from);
    return std::regex_replace(section, std::regex("\\s+"), " ");  // lines are broken anywhere
}

}  // namespace

TEST_CASE("grant rules: each is cited where it is carried out, and no other", "[queue]") {
    const auto listed = matches(rules(), "\\*\\*(G[0-9]+)\\.\\*\\*");
    const auto cited = matches(texts_below(checkout / "lib/zkasio/locks/detail"), "\\b(G[0-9]+)\\b");
    CHECK(listed == cited);
}

TEST_CASE("grant rules: the tests that are said to fail without them exist", "[queue]") {
    std::string tests;
    for (const char* level : {"unit", "simulation", "integration", "testing"})
        tests += texts_below(checkout / "tests" / level);
    const auto named = matches(rules(), "\"([^\"]+)\"");
    CHECK(named.size() > 20);
    for (const std::string& name : named) {
        INFO(name);
        CHECK(tests.find('"' + name + '"') != std::string::npos);
    }
}
