#include "support/catch.hpp"
#include "support/fork_child.hpp"

#include <zkasio/locks/detail/cohort/cohort.hpp>

#include <sys/wait.h>

using namespace zkasio::lock_detail;

TEST_CASE("process_mutex: a child process has it, unless a thread of its parent had it", "[cohort]") {
    const process_mutex one, other;
    const auto mine = one.lock();
    REQUIRE(mine);
    const pid_t pid = zkasio::test::fork_child([&] {
        const auto held = one.lock(), free = other.lock();
        return std::string(held ? "the parent's is free" : free ? "" : "a free one is held");
    });
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
}
