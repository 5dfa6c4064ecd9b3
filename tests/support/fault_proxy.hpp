#pragma once

#include <zkasio/testing/proxy.hpp>

namespace zkasio::test {

using fault_proxy = testing::proxy;

}  // namespace zkasio::test
