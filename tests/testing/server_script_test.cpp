// scripts/zookeeper_server.sh starts servers as the testing kit does.

#include "support/catch.hpp"
#include "support/source_dir.hpp"
#include "support/temporary_directory.hpp"

#include <zkasio/testing/ensemble.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A directory with a program that stands in for Java: it writes down what it was called with, and ends.
struct not_java {
    not_java() {
        std::ofstream(dir / "java") << "#!/bin/sh\nfor arg; do echo \"$arg\"; done > " << dir.path()
                                     << "/args\nfor last; do :; done\ncp \"$last\" " << dir.path() << "/zoo.cfg\n";
        fs::permissions(dir / "java", fs::perms::owner_all);
    }
    // In any order, and without what is different each time: directories and ports.
    std::vector<std::string> lines_of(const std::string& file) const {
        std::ifstream in(dir / file);
        std::vector<std::string> lines;
        for (std::string line; std::getline(in, line);) {
            for (const std::string key : {"dataDir=", "clientPort=", "secureClientPort="})
                if (line.starts_with(key)) line = key;
            if (line.ends_with("/zoo.cfg")) line = "zoo.cfg";
            if (!line.empty()) lines.push_back(line);
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    const zkasio::test::temporary_directory dir;
};

}  // namespace

TEST_CASE("testing: the script and the kit start servers with the same configuration", "[testing]") {
    if (!fs::exists("/usr/share/java/zookeeper.jar")) return;
    for (const bool tls : {false, true}) {
        INFO((tls ? "with" : "without") << " TLS");
        const not_java java;
        auto options = zkasio::testing::server_options().java(java.dir / "java");
        if (tls) options.tls("/key", "/ca").line("ssl.clientAuth=want");
        CHECK_THROWS_AS(zkasio::testing::ensemble(1, options), std::runtime_error);  // it has ended
        const auto args = java.lines_of("args"), configuration = java.lines_of("zoo.cfg");
        CHECK(configuration.size() > 8);
        const std::string environment =
            tls ? "TLS_PORT=1 TLS_KEY=/key TLS_CA=/ca TLS_LINES=ssl.clientAuth=want " : "";
        const std::string command = environment + "PATH=" + java.dir.path() + ":$PATH " + source_dir() +
                                    "/scripts/zookeeper_server.sh " + java.dir.path() + "/server 127.0.0.1 2181";
        REQUIRE(std::system(command.c_str()) == 0);
        CHECK(java.lines_of("args") == args);
        CHECK(java.lines_of("zoo.cfg") == configuration);
    }
}
