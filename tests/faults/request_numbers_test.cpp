// The C library's numbers of requests, in a process in which they begin shortly before the reserved ones.

#include "support/scripted_connection.hpp"

#include <zkasio/detail/connection/request_numbers.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

constexpr const char* time_variable = "ZKASIO_TEST_TIME_OF_DAY";

// 2^32 - 2000: the library begins at -2000.
constexpr const char* shortly_before = "4294965296";

// The result of this test in a process of its own.
int run_again(const char* test, const char* time_of_day) {
    std::vector<std::string> environment{std::string(time_variable) + '=' + time_of_day};
    for (char** e = environ; *e; ++e) environment.emplace_back(*e);
    std::vector<char*> variables;
    for (std::string& e : environment) variables.push_back(e.data());
    variables.push_back(nullptr);
    std::string program = "/proc/self/exe", name = test;
    char* const arguments[] = {program.data(), name.data(), nullptr};
    pid_t pid = 0;
    REQUIRE(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, variables.data()) == 0);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return status;
}

}  // namespace

// What the library asks for its first number.
extern "C" std::time_t time(std::time_t* to) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const char* const instead = std::getenv(time_variable);
    const std::time_t t = instead ? std::strtoll(instead, nullptr, 10) : now.tv_sec;
    if (to) *to = t;
    return t;
}

TEST_CASE("request numbers: a process steps over the reserved ones", "[clear]") {
    constexpr const char* name = "request numbers: a process steps over the reserved ones";
    if (!std::getenv(time_variable)) {
        CHECK(run_again(name, shortly_before) == 0);
        return;
    }
    connection c;
    constexpr op_id requests = 5000, at_once = 50;
    std::int32_t last = -2001;
    int restarts = 0;
    for (op_id id = 1; id <= requests; id += at_once) {
        c.b->begin_batch();
        for (op_id i = 0; i < at_once; ++i) REQUIRE_FALSE(c.b->submit(id + i, get_request{"/a", false}));
        c.b->end_batch();
        for (op_id i = 0; i < at_once; ++i) {
            const std::int32_t number = c.server.read_packet().xid;
            REQUIRE(number < first_reserved_number);
            restarts += number <= last;
            last = number;
            c.server.answer(number, -101);
        }
        drive(*c.b, [&] { return c.seen.replies.size() == id + at_once - 1; });
    }
    for (const auto& [id, replies] : c.seen.replies) {
        REQUIRE(replies.size() == 1);
        REQUIRE(replies[0].code == zk_errc::no_node);
    }
    CHECK(restarts >= 2);  // the library begins again at the time of day
    CHECK(c.seen.links == std::vector<link_state>{link_state::connected});
}
