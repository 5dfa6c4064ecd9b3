#include "support/catch.hpp"
#include "support/source_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace {

struct storey {
    std::size_t height = 0;
    std::string room;
};

// The drawing in docs/architecture.md, from the top: rooms of one line stand beside each other (|), and a room may have
// several folders and files (+).
std::map<std::string, storey> drawn_house() {
    std::ifstream page(source_dir() + "/docs/architecture.md");
    std::map<std::string, storey> house;
    std::string line;
    while (std::getline(page, line) && line != "```storeys") {
    }
    for (std::size_t height = 1000; std::getline(page, line) && line != "```"; --height) {
        std::istringstream words(line);
        storey s{height, {}};
        for (std::string word; words >> word;) {
            if (word == "|") s.room.clear();
            if (word == "|" || word == "+") continue;
            if (s.room.empty()) s.room = word;
            house[word] = s;
        }
    }
    return house;
}

// @param file below lib/zkasio. Files beside the folders that are not drawn are values; each folder is drawn.
const storey& storey_of(const std::map<std::string, storey>& house, const std::filesystem::path& file) {
    const std::string folder = file.parent_path().string();
    const bool behind_client = folder == "detail" || folder.starts_with("detail/");
    const std::string room = behind_client ? folder : folder.substr(0, folder.find('/'));
    const auto found = house.find(room.empty() ? file.stem().string() : room);
    INFO(file.string());
    REQUIRE((found != house.end() || room.empty()));
    return found != house.end() ? found->second : house.at("values");
}

bool is_public_header(const std::string& file) {
    return file.ends_with(".hpp") && !file.starts_with("detail/") && file.find("/detail/") == std::string::npos;
}

// A public header sees no detail/, and a recipe only its own.
bool may_see(const std::string& file, const std::string& included, const storey& here) {
    const bool is_detail = included.starts_with("detail/") || included.find("/detail/") != std::string::npos;
    if (!is_detail) return true;
    if (is_public_header(file)) return false;
    for (const char* recipe : {"locks", "cache", "config", "election", "counters", "barriers", "transact", "queues",
                               "membership", "discovery"})
        if (here.room == recipe) return included.starts_with(here.room + "/detail/");
    return true;
}

}  // namespace

TEST_CASE("each file includes from its own room, or from one below") {
    const std::map<std::string, storey> house = drawn_house();
    REQUIRE(house.size() > 20);
    const std::filesystem::path lib = source_dir() + "/lib/zkasio";
    for (const auto& [name, where] : house) {
        INFO(name);
        const bool is_file = std::filesystem::exists(lib / (name + ".hpp"));
        CHECK((name == "values" || is_file || std::filesystem::is_directory(lib / name)));
    }
    const std::regex include(R"(^\s*#\s*include\s*[<"]zkasio/([^>"]+)[>"])"), quoted(R"(^\s*#\s*include\s*")");
    std::string wrong;
    std::size_t includes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(lib)) {
        if (!entry.is_regular_file()) continue;
        const std::string file = entry.path().lexically_relative(lib).string();
        const storey& here = storey_of(house, file);
        std::ifstream source(entry.path());
        std::smatch found;
        for (std::string line; std::getline(source, line);) {
            if (std::regex_search(line, quoted)) wrong += file + ": " + line + '\n';
            if (!std::regex_search(line, found, include)) continue;
            ++includes;
            const std::string included = found[1];
            const storey& there = storey_of(house, included);
            const bool is_below = here.room == there.room || here.height > there.height;
            if (!is_below || !may_see(file, included, here)) wrong += file + " -> " + included + '\n';
        }
    }
    INFO(wrong);
    CHECK(wrong.empty());
    CHECK(includes > 1000);
}

TEST_CASE("includes beside each other are in order, and lines of the library have at most 120 columns") {
    const std::regex include(R"(^#include ([<"].*[>"]))");
    std::string wrong;
    std::size_t includes = 0;
    for (const char* folder : {"lib", "tests", "examples"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() + '/' + folder)) {
            if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") continue;
            const std::string file = entry.path().lexically_relative(source_dir()).string();
            std::ifstream source(entry.path());
            std::string above;  // empty: this line is not the neighbour of an include
            std::smatch found;
            for (std::string line; std::getline(source, line);) {
                const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
                if (columns > 120 && !file.starts_with("tests/")) wrong += file + " is too wide: " + line + '\n';
                const bool includes_something = line.starts_with('#') && std::regex_search(line, found, include);
                const std::string here = includes_something ? found[1].str() : std::string();
                includes += includes_something;
                if (includes_something && above > here) wrong += file + ": " + here + " behind " + above + '\n';
                above = here;
            }
        }
    INFO(wrong);
    CHECK(wrong.empty());
    CHECK(includes > 5000);
}

// A user's wrong Asio is refused by an #error in that header: tests/consumer/wrong-asio.cmake.
TEST_CASE("a public header includes asio_version.hpp before Asio, and only that file knows Asio's version") {
    const std::filesystem::path lib = source_dir() + "/lib/zkasio";
    std::string wrong;
    std::size_t with_asio = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(lib)) {
        const std::string file = entry.path().lexically_relative(lib).string();
        if (!entry.is_regular_file() || file == "asio_version.hpp") continue;
        std::ifstream source(entry.path());
        const std::string text((std::istreambuf_iterator<char>(source)), std::istreambuf_iterator<char>());
        if (text.find("ASIO_VERSION") != std::string::npos) wrong += file + " speaks of ASIO_VERSION\n";
        const std::size_t asio = text.find("#include <asio/");
        if (!is_public_header(file) || asio == std::string::npos) continue;
        ++with_asio;
        if (text.find("#include <zkasio/asio_version.hpp>") > asio) wrong += file + " includes Asio first\n";
    }
    INFO(wrong);
    CHECK(wrong.empty());
    CHECK(with_asio > 20);
}
