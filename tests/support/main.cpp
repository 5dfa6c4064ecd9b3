#define CATCH_CONFIG_MAIN
#include "support/base_line.hpp"
#include "support/catch.hpp"
#include "support/surroundings.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

// With ZKASIO_TEST_LEAVES_NOTHING ("process": but for what servers keep), the program fails if a test leaves something
// behind, unless the test has the tag [leaves]: those of Asio's system_context, whose threads stay, among others.
struct listener final : listener_base {
    using listener_base::listener_base;

    void testCaseStarting(const Catch::TestCaseInfo& test) override {
        name = test.name;
        before.reset();
        zkasio::test::surroundings::current().begin_test();
        const bool may_leave = test.tagsAsString().find("[leaves]") != std::string::npos;
        const char* const what = std::getenv("ZKASIO_TEST_LEAVES_NOTHING");
        if (what && !may_leave) before.emplace(std::string(what) != "process");
    }
    void testCaseEnded(const Catch::TestCaseStats&) override {
        const std::string left = before ? before->left_behind() : std::string();
        if (left.empty()) return;
        std::fprintf(stderr, "FAILED: \"%s\" leaves behind%s\n", name.c_str(), left.c_str());
        has_failed = true;
    }
    void testRunEnded(const Catch::TestRunStats&) override {
        if (has_failed) std::exit(1);
    }

    std::string name;
    bool has_failed = false;
    std::optional<zkasio::test::base_line> before;
};

}  // namespace

CATCH_REGISTER_LISTENER(listener)

#if defined(__SANITIZE_THREAD__)
// The count of those who share an exception is kept by libstdc++.so, which is not instrumented: ThreadSanitizer sees
// the last of them free it, and not that the others have let go before.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
