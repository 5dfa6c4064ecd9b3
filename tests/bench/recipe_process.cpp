#include "recipe_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace bench {
namespace {

std::string program_of(const std::string& library) {
    return library == "zkasio" ? ZKASIO_BENCH_RECIPE_WORKER : ZKASIO_BENCH_RECIPE_PEERS_DIR "/" + library;
}

}  // namespace

recipe_process::recipe_process(const std::string& library, const std::string& server, int session_timeout_ms) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    const std::string program = program_of(library), timeout = std::to_string(session_timeout_ms);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(ends[1], STDIN_FILENO);
        ::dup2(ends[1], STDOUT_FILENO);
        ::close_range(3, ~0U, 0);
        ::execl(program.c_str(), library.c_str(), server.c_str(), timeout.c_str(), nullptr);
        std::_Exit(1);
    }
    ::close(ends[1]);
    line_ = ends[0];
    answers_ = ::fdopen(line_, "r");
    answer("ready");
}

void recipe_process::tell(const std::string& command) {
    const std::string line = command + "\n";
    if (::send(line_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        throw std::runtime_error("the process has ended");
}

std::istringstream recipe_process::answer(const std::string& first) {
    std::string line, word;
    for (int c; (c = std::getc(answers_)) != EOF && c != '\n';) line += static_cast<char>(c);
    std::istringstream words(line);
    if (!(words >> word) || word != first)
        throw std::runtime_error("the process says \"" + line + "\" instead of " + first);
    return words;
}

double recipe_process::time_of(const std::string& first) {
    double t = 0;
    answer(first) >> t;
    return t;
}

void recipe_process::give_up_after(int seconds) noexcept {
    const timeval limit{seconds, 0};
    ::setsockopt(line_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void recipe_process::kill() noexcept {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(answers_);
    pid_ = -1;
}

std::vector<std::string> recipe_libraries(bool with_peers) {
    std::vector<std::string> all;
    for (const char* library : {"zkasio", "curator", "kazoo"}) {
        const bool ours = !all.size();
        if (!ours && !with_peers) continue;
        if (::access(program_of(library).c_str(), X_OK) == 0) all.emplace_back(library);
        else std::printf("without %s: it was not there when the benchmarks were configured\n", library);
    }
    return all;
}

double resident_memory(pid_t process) {
    std::ifstream pages("/proc/" + std::to_string(process) + "/statm");
    double all = 0, in_memory = 0;
    pages >> all >> in_memory;
    return in_memory * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace bench
