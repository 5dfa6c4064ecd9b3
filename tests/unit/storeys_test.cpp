#include "support/catch.hpp"
#include "support/source_dir.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

using namespace zkasio::test;

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

// @param file below lib/zkasio.
const storey& storey_of(const std::map<std::string, storey>& house, const std::filesystem::path& file) {
    const std::string folder = file.parent_path().string();
    std::string where = folder.starts_with("detail/") ? folder : folder.substr(0, folder.find('/'));
    if (where.empty()) where = file.stem().string();
    const auto found = house.find(where);
    return found != house.end() ? found->second : house.at("values");
}

}  // namespace

TEST_CASE("each file includes from its own room, or from one below") {
    const std::map<std::string, storey> house = drawn_house();
    REQUIRE(house.size() > 20);
    const std::filesystem::path lib = source_dir() + "/lib/zkasio";
    std::string upwards;
    std::size_t includes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(lib)) {
        if (!entry.is_regular_file()) continue;
        const std::filesystem::path file = entry.path().lexically_relative(lib);
        const storey& here = storey_of(house, file);
        std::ifstream source(entry.path());
        for (std::string line; std::getline(source, line);) {
            const std::string begin = "#include <zkasio/";
            if (!line.starts_with(begin)) continue;
            ++includes;
            const std::string included = line.substr(begin.size(), line.rfind('>') - begin.size());
            const storey& there = storey_of(house, included);
            const bool allowed = here.room == there.room || here.height > there.height;
            if (!allowed) upwards += file.string() + " -> " + included + '\n';
        }
    }
    INFO(upwards);
    CHECK(upwards.empty());
    CHECK(includes > 1000);
}
