#include "support/catch.hpp"
#include "support/source_dir.hpp"

#include <zkasio/locks/detail/queue/contender.hpp>

#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace contender_stage_tests {

using namespace zkasio::lock_detail;

namespace {

using arrow = std::pair<std::string, std::string>;

std::vector<stage> all_stages() {
    std::vector<stage> all;
    for (int i = 0; i <= static_cast<int>(stage::left); ++i) all.push_back(static_cast<stage>(i));
    return all;
}

// The lines "from --> to: why" of the diagram.
std::set<arrow> drawn() {
    std::ifstream page(source_dir() + "/docs/lock-queue.md");
    REQUIRE(page);
    std::set<arrow> all;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line == "stateDiagram-v2") inside = true;
        if (line == "```") inside = false;
        std::istringstream words(line);
        std::string from, points, to;
        if (!inside || !(words >> from >> points >> to) || points != "-->") continue;
        if (to.back() == ':') to.pop_back();
        if (from != "[*]" && to != "[*]") CHECK(all.emplace(from, to).second);
    }
    return all;
}

}  // namespace

TEST_CASE("contender: its stages follow each other as docs/lock-queue.md draws it, and not otherwise", "[queue]") {
    const std::set<arrow> diagram = drawn();
    CHECK(diagram.size() == stage_transitions().size());
    for (const stage from : all_stages()) {
        for (const stage to : all_stages()) {
            INFO(to_string(from) << " --> " << to_string(to));
            CHECK(may_follow(from, to) == diagram.contains({std::string(to_string(from)), std::string(to_string(to))}));
        }
    }
}

TEST_CASE("contender: whoever gives up may do so at any stage, and is never wanted again", "[queue]") {
    for (const stage s : all_stages()) {
        INFO(to_string(s));
        if (has_given_up(s)) {
            for (const stage next : all_stages()) CHECK((!may_follow(s, next) || next == stage::left));
        } else {
            CHECK(has_given_up(after_giving_up(s)));
            CHECK(may_follow(s, after_giving_up(s)));
        }
        CHECK_FALSE((owns(s) && (is_entering(s) || has_given_up(s))));
    }
}

TEST_CASE("contender: its stages have names of their own", "[queue]") {
    std::set<std::string_view> names;
    for (const stage s : all_stages()) names.insert(to_string(s));
    CHECK(names.size() == all_stages().size());
    CHECK(to_string(stage::outside) == "outside");
    CHECK(to_string(stage::left) == "left");
}

}  // namespace contender_stage_tests
