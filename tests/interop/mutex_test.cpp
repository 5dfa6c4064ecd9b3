#include "support/catch.hpp"
#include "interop/peer.hpp"
TEST_CASE("placeholder") {}
