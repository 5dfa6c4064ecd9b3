#include "support/temporary_directory.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <stdlib.h>

namespace zkasio::test {

temporary_directory::temporary_directory() {
    path_ = (std::filesystem::temp_directory_path() / "zkasio-test.XXXXXX").string();
    if (!::mkdtemp(path_.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace zkasio::test
