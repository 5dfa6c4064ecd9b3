#include "support/test_server.hpp"

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zkasio::test {

using asio::ip::tcp;

std::uint16_t free_port(const std::string& address) {
    asio::io_context io;
    tcp::acceptor a(io, tcp::endpoint(asio::ip::make_address(address), 0));
    return a.local_endpoint().port();
}

std::string four_letter_command(const std::string& host_port, const std::string& four_letters) {
    const auto colon = host_port.rfind(':');
    asio::io_context io;
    tcp::socket s(io);
    std::error_code failed;
    s.connect(tcp::endpoint(asio::ip::make_address(host_port.substr(0, colon)),
                            static_cast<std::uint16_t>(std::stoi(host_port.substr(colon + 1)))), failed);
    if (failed) return {};
    asio::write(s, asio::buffer(four_letters), failed);
    // A server that is starting or stopping may accept and never answer. (Asio's own read would wait for ever.)
    std::string answer;
    std::array<char, 4096> part;
    pollfd readable{s.native_handle(), POLLIN, 0};
    while (::poll(&readable, 1, 2000) > 0) {
        const ssize_t n = ::recv(s.native_handle(), part.data(), part.size(), 0);
        if (n <= 0) break;
        answer.append(part.data(), static_cast<std::size_t>(n));
    }
    return answer;
}

test_server::test_server(int count, std::vector<std::string> environment) : environment_(std::move(environment)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "zkasio-test.XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
    dir_ = pattern;
    nodes_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        nodes_[static_cast<std::size_t>(i)].port = free_port(address(i));
        if (count > 1)
            ensemble_.push_back("server." + std::to_string(i + 1) + "=" + address(i) + ":" +
                                std::to_string(free_port(address(i))) + ":" + std::to_string(free_port(address(i))));
        connect_string_ += (i ? "," : "") + address(i) + ":" + std::to_string(port(i));
    }
    for (int i = 0; i < count; ++i) launch(i);
    for (int i = 0; i < count; ++i) wait_until_serving(i);
}

test_server::~test_server() {
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) kill(i);
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
}

void test_server::launch(int server) {
    std::vector<std::string> args{ZKASIO_SOURCE_DIR "/scripts/zookeeper_server.sh", dir_ + "/" + std::to_string(server),
                                  address(server), std::to_string(port(server))};
    if (!ensemble_.empty()) {
        args.push_back(std::to_string(server + 1));
        args.insert(args.end(), ensemble_.begin(), ensemble_.end());
    }
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    std::vector<char*> variables;
    for (std::string& v : environment_) variables.push_back(v.data());
    for (char** v = environ; *v; ++v) variables.push_back(*v);
    variables.push_back(nullptr);
    pid_t pid = -1;
    if (const int failed = ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), variables.data()))
        throw std::system_error(failed, std::generic_category(), args[0]);
    nodes_[static_cast<std::size_t>(server)].pid = pid;
}

void test_server::wait_until_serving(int server) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ask("srvr", server).find("Mode:") == std::string::npos) {
        int status = 0;
        if (::waitpid(nodes_[static_cast<std::size_t>(server)].pid, &status, WNOHANG) > 0)
            throw std::runtime_error("the ZooKeeper server ended; see " + dir_);
        if (std::chrono::steady_clock::now() > give_up)
            throw std::runtime_error("the ZooKeeper server does not answer");
        ::poll(nullptr, 0, 20);
    }
}

std::string test_server::ask(const std::string& four_letters, int server) const {
    return four_letter_command(address(server) + ":" + std::to_string(port(server)), four_letters);
}

void test_server::kill(int server) {
    pid_t& pid = nodes_[static_cast<std::size_t>(server)].pid;
    if (pid < 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
}

void test_server::start(int server) {
    launch(server);
    wait_until_serving(server);
}

void test_server::pause(int server) {
    const pid_t pid = nodes_[static_cast<std::size_t>(server)].pid;
    ::kill(pid, SIGSTOP);
    ::waitpid(pid, nullptr, WUNTRACED);  // until it has stopped
}
void test_server::resume(int server) { ::kill(nodes_[static_cast<std::size_t>(server)].pid, SIGCONT); }

const std::string& shared_servers() {
    static const std::string servers = [] {
        if (const char* given = std::getenv("ZKASIO_TEST_SERVERS"); given && *given) return std::string(given);
        static test_server own;
        return own.connect_string();
    }();
    return servers;
}

std::string first_server() {
    const std::string& all = shared_servers();
    return all.substr(0, all.find(','));
}

}  // namespace zkasio::test
