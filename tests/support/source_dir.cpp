#include "support/source_dir.hpp"

std::string source_dir() { return ZKASIO_SOURCE_DIR; }
