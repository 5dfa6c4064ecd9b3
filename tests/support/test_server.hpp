#pragma once

#include <zkasio/testing/ensemble.hpp>

#include <string>

namespace zkasio::test {

using test_server = testing::ensemble;
using testing::four_letter_command;
using testing::free_port;

/// The servers that the tests share: $ZKASIO_TEST_SERVERS, or one of our own for this process.
const std::string& shared_servers();

/// The first of shared_servers().
std::string first_server();

}  // namespace zkasio::test
