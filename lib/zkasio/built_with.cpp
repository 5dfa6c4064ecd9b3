#include <zkasio/built_with.hpp>

// The settings of this build, to which all programs that use it refer.
namespace zkasio::library_was_not_built {

const char ZKASIO_SETTING_1 = 1, ZKASIO_SETTING_2 = 1, ZKASIO_SETTING_3 = 1, ZKASIO_SETTING_4 = 1;

}  // namespace zkasio::library_was_not_built
