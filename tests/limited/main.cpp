// Runs a command, such as tests, in front of servers that know less than the real ones:
//
//     ZKASIO_TEST_SERVERS=127.0.0.1:2181 zkasio_limited_servers keeper-25.11 zkasio_integration_tests "mutex: *"
//
// The command finds them in ZKASIO_TEST_SERVERS. Its exit status is this program's, and 77 says that there are no
// servers. At its end, what they were asked for in vain.

#include "support/limited_server.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <sstream>
#include <string>

using zkasio::test::limited_server;
using zkasio::test::limits;

namespace {

int usage() {
    std::string names;
    for (const auto& name : limits::names()) names += ' ' + std::string(name);
    std::fprintf(stderr, "usage: ZKASIO_TEST_SERVERS=... zkasio_limited_servers SERVER COMMAND...\nservers:%s\n",
                 names.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return usage();
    const char* const real = std::getenv("ZKASIO_TEST_SERVERS");
    if (!real || !*real) return 77;
    try {
        const limits what = limits::of(argv[1]);
        std::deque<limited_server> servers;
        std::string addresses;
        std::istringstream list(real);
        for (std::string one; std::getline(list, one, ',');) {
            servers.emplace_back(one, what);
            addresses += (addresses.empty() ? "" : ",") + servers.back().address();
        }
        // Threads run by now: between fork() and exec() nothing may be allocated.
        ::setenv("ZKASIO_TEST_SERVERS", addresses.c_str(), 1);
        const pid_t child = ::fork();
        if (child == 0) {
            ::execvp(argv[2], argv + 2);
            ::_exit(127);
        }
        int status = 0;
        if (child < 0 || ::waitpid(child, &status, 0) < 0) return 1;
        for (const limited_server& s : servers) std::printf("%s: %s\n", argv[1], s.report().c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return usage();
    }
}
