#include "support/catch.hpp"

#include <zkasio/locks/detail/cohort/process_mutex.hpp>

#include <sys/wait.h>
#include <unistd.h>

using namespace zkasio::lock_detail;

TEST_CASE("process_mutex: a child process has it, unless a thread of its parent had it", "[cohort]") {
    const process_mutex one, other;
    const auto mine = one.lock();
    REQUIRE(mine);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::alarm(20);
        const auto held = one.lock(), free = other.lock();
        ::_exit(!held && free ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
}
