#pragma once

#include "support/catch.hpp"

#include <catch2/trompeloeil.hpp>
