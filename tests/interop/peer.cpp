#include "interop/peer.hpp"

#include <asio/local/stream_protocol.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zkasio::test {
namespace {

void check(int code, const std::string& what) {
    if (code != 0) throw std::system_error(code, std::generic_category(), what);
}

// One socket is its standard input and output: writing to a peer that has died is an error then, and not a signal.
std::pair<pid_t, int> start(const std::string& name, const std::string& servers) {
    std::vector<std::string> arguments{ZKASIO_PEERS_DIR "/" + name, servers};
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);

    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) check(errno, "socketpair");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t pid = -1;
    const int failed = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed) ::close(ends[0]);
    check(failed, arguments[0]);
    return {pid, ends[0]};
}

}  // namespace

struct peer::state : std::enable_shared_from_this<state> {
    struct box {
        explicit box(const asio::any_io_executor& e) : arrived(e) {}
        std::deque<std::string> answers;
        asio::steady_timer arrived;
    };

    state(const asio::any_io_executor& e, std::string n, std::pair<pid_t, int> process)
        : name(std::move(n)), pid(process.first), line(e, asio::local::stream_protocol(), process.second) {}

    box& of(const std::string& id) { return boxes.try_emplace(id, line.get_executor()).first->second; }

    void read() {
        line.async_read_some(asio::buffer(chunk), [s = shared_from_this()](std::error_code failed, std::size_t n) {
            if (failed) {
                s->ended = true;
                for (auto& [id, b] : s->boxes) b.arrived.cancel();
                return;
            }
            s->rest.append(s->chunk.data(), n);
            std::size_t from = 0;
            for (std::size_t to; (to = s->rest.find('\n', from)) != std::string::npos; from = to + 1)
                s->file(s->rest.substr(from, to - from));
            s->rest.erase(0, from);
            s->read();
        });
    }

    void file(const std::string& text) {
        const std::size_t space = text.find(' ');
        box& b = of(text.substr(0, space));
        b.answers.push_back(space == std::string::npos ? std::string() : text.substr(space + 1));
        b.arrived.cancel();
    }

    void end() noexcept {
        if (pid < 0) return;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        pid = -1;
    }

    std::string name;
    pid_t pid;
    asio::local::stream_protocol::socket line;
    std::array<char, 4096> chunk{};
    std::string rest;
    std::map<std::string, box> boxes;
    bool ended = false;
};

peer::peer(asio::any_io_executor executor, std::string name, std::string servers)
    : state_(std::make_shared<state>(executor, name, start(name, servers))) {
    state_->read();
}

peer::~peer() {
    state_->end();
    std::error_code ignored;
    state_->line.close(ignored);
}

const std::string& peer::name() const noexcept { return state_->name; }

asio::awaitable<void> peer::ready() { co_await expect("ready", ""); }

void peer::send(std::string_view line) {
    // A few words: they fit into the socket's buffer. That the peer has ended is for expect() to say.
    std::error_code ignored;
    asio::write(state_->line, asio::buffer(std::string(line) + '\n'), ignored);
}

asio::awaitable<std::string> peer::expect(std::string id) {
    const auto s = state_;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (s->of(id).answers.empty()) {
        if (s->ended) throw std::runtime_error("the " + s->name + " peer has ended without an answer to " + id);
        if (std::chrono::steady_clock::now() >= give_up)
            throw std::runtime_error("the " + s->name + " peer does not answer to " + id);
        std::error_code woken;
        s->of(id).arrived.expires_at(give_up);
        co_await s->of(id).arrived.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    std::string answer = std::move(s->of(id).answers.front());
    s->of(id).answers.pop_front();
    co_return answer;
}

asio::awaitable<std::string> peer::acquired(std::string id) {
    const std::string answer = co_await expect(id);
    if (!answer.starts_with("acquired "))
        throw std::runtime_error("the " + state_->name + " peer: " + id + " " + answer);
    co_return answer.substr(9);
}

asio::awaitable<void> peer::expect(std::string id, std::string answer) {
    const std::string got = co_await expect(id);
    if (got != answer)
        throw std::runtime_error("the " + state_->name + " peer: " + id + " " + got + " instead of " + answer);
}

bool peer::answered(const std::string& id) const { return !state_->of(id).answers.empty(); }

void peer::kill() noexcept { state_->end(); }

asio::awaitable<void> peer::exit() {
    send("exit");
    while (!state_->ended) {
        std::error_code woken;
        state_->of("").arrived.expires_after(std::chrono::seconds(1));
        co_await state_->of("").arrived.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    state_->end();
}

}  // namespace zkasio::test
