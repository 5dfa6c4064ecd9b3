#define CATCH_CONFIG_MAIN
#include "support/catch.hpp"

#if defined(__SANITIZE_THREAD__)
// The count of those who share an exception is kept by libstdc++.so, which is not instrumented: ThreadSanitizer sees
// the last of them free it, and not that the others have let go before.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
