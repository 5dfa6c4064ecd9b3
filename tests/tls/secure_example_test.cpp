#include "support/catch.hpp"
#include "tls/tls_server.hpp"

#include <cstdlib>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

// Programs that are not built with sanitizers are not run by tests that are.
#ifdef ZKASIO_SECURE_EXAMPLE
TEST_CASE("examples/secure.cpp does what docs/operating.md shows") {
    const tls_server server;
    const tls_files files = server.files();
    const std::string command = std::string(ZKASIO_SECURE_EXAMPLE) + ' ' + server.address() + ' ' + files.ca() + ' ' +
                                files.chain() + ' ' + files.key();
    CHECK(std::system(command.c_str()) == 0);
}
#endif
