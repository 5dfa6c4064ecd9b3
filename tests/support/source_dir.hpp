#pragma once

#include <string>

/// The directory of the checkout. A function, so that only its source is compiled anew in another checkout.
std::string source_dir();
