#pragma once

// Catch2 2 (Debian 12) and 3 (Debian 13) differ in their header only, as far as these tests go.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
