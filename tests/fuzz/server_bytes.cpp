// The bytes of a server, through the C library: what a server may send at any time after the connection was accepted.
//
// Each line is an action of the server; lines that are none are skipped:
//     handshake TIMEOUT SESSION    answers the handshake (implied by the first other line)
//     bytes HEX                    these bytes
//     answer ERROR HEX             to the oldest unanswered request: the error, and the body of the answer
//     answer-to N ERROR HEX        with this number instead of the request's
//     event TYPE PATH              of a watch
//     cut                          ends the connection
//
// In a child process: the C library trusts its server, and asserts, or reads memory that was never written, for answers
// that are out of step or cut short (docs/limits.md). What dies within the library is no finding here; everything else
// is: a crash in zkasio, a request without an answer or with two, an answer to no request, a connection that does not
// end. ZKASIO_FUZZ_TELLS=1 shows what becomes of one text.
#include "fuzz/fuzz.hpp"

#include <zkasio/detail/seam/backend.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <optional>

#include <dlfcn.h>
#include <execinfo.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sanitizer/common_interface_defs.h>

// The sections of clang's counters of edges.
extern "C" char __start___sancov_cntrs, __stop___sancov_cntrs;  // NOLINT

namespace {

using namespace zkasio::fuzz;
using namespace zkasio::detail;

constexpr int died_in_library = 42;

// ---------------------------------------------------------------------------------- the child and its coverage
// libFuzzer looks at these counters, too. A page of its own, which parent and child share.
constexpr std::size_t counters = 1 << 16;
__attribute__((section("__libfuzzer_extra_counters"), aligned(4096))) std::uint8_t of_child[counters];

void hand_over_coverage() noexcept {
    std::size_t i = 0;
    for (const char* c = &__start___sancov_cntrs; c != &__stop___sancov_cntrs; ++c, ++i)
        if (*c) of_child[i % counters] = static_cast<std::uint8_t>(*c);
}

// Whether the C library is among the callers of what has crashed.
bool is_in_library() noexcept {
    std::array<void*, 128> frames;
    const int n = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    for (int i = 0; i < n; ++i) {
        Dl_info where{};
        if (::dladdr(frames[static_cast<std::size_t>(i)], &where) && where.dli_fname &&
            std::strstr(where.dli_fname, "libzookeeper"))
            return true;
    }
    return false;
}

bool is_ours = false;  // what ends the process

void on_death() noexcept {
    hand_over_coverage();
    if (is_ours || !is_in_library()) return;
    if (std::getenv("ZKASIO_FUZZ_TELLS")) std::fprintf(stderr, "the C library has ended the process\n");
    ::_exit(died_in_library);
}

void on_signal(int number) {
    on_death();
    ::signal(number, SIG_DFL);
    ::raise(number);
}

// ------------------------------------------------------------------------------------------------ the server
class server {
public:
    server() {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        require(::bind(listener_, reinterpret_cast<sockaddr*>(&a), size) == 0 && ::listen(listener_, 8) == 0 &&
                    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &size) == 0,
                "there is a port");
        port_ = ntohs(a.sin_port);
    }
    std::uint16_t port() const { return port_; }

    // Takes a new connection, if there is one, and all that has come.
    void look() {
        pollfd p{listener_, POLLIN, 0};
        if (::poll(&p, 1, 0) == 1) {
            cut();
            peer_ = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            const int on = 1;
            ::setsockopt(peer_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        std::array<char, 4096> some;
        for (ssize_t n; peer_ >= 0 && (n = ::recv(peer_, some.data(), some.size(), 0)) > 0;)
            received_.append(some.data(), static_cast<std::size_t>(n));
        while (received_.size() >= 4 && received_.size() >= 4 + length()) {
            if (is_greeted_ && length() >= 8) numbers_.push_back(int_at(4));
            received_.erase(0, 4 + length());
            if (!is_greeted_) waits_for_answer_ = true;
            is_greeted_ = true;
        }
    }
    bool waits_for_handshake() const { return peer_ >= 0 && waits_for_answer_; }
    void greet(std::int32_t timeout, std::int64_t session) {
        waits_for_answer_ = false;
        std::string text = number(0) + number(timeout) + number(static_cast<std::int32_t>(session >> 32)) +
                           number(static_cast<std::int32_t>(session)) + number(16) + std::string(16, 'p') + '\0';
        send(number(static_cast<std::int32_t>(text.size())) + text);
    }
    void packet(std::int32_t xid, std::int32_t failure, const std::string& body) {
        const std::string text = number(xid) + number(0) + number(77) + number(failure) + body;
        send(number(static_cast<std::int32_t>(text.size())) + text);
    }
    void answer(std::int32_t failure, const std::string& body) {
        if (numbers_.empty()) return;
        const std::int32_t xid = numbers_.front();
        numbers_.pop_front();
        packet(xid, failure, body);
    }
    void event(std::int32_t type, std::string_view path) {
        packet(-1, 0, number(type) + number(3) + number(static_cast<std::int32_t>(path.size())) + std::string(path));
    }
    void send(const std::string& bytes) {
        if (peer_ >= 0) static_cast<void>(::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    }
    void cut() {
        if (peer_ >= 0) ::close(peer_);
        peer_ = -1;
        received_.clear();
        numbers_.clear();
        is_greeted_ = waits_for_answer_ = false;
    }

    static std::string number(std::int32_t n) {
        std::string bytes(4, '\0');
        for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(static_cast<std::uint32_t>(n) >> (24 - 8 * i));
        return bytes;
    }

private:
    std::int32_t int_at(std::size_t at) const {
        std::uint32_t n = 0;
        for (std::size_t i = at; i < at + 4; ++i) n = n << 8 | static_cast<unsigned char>(received_[i]);
        return static_cast<std::int32_t>(n);
    }
    std::size_t length() const { return static_cast<std::uint32_t>(int_at(0)); }

    int listener_ = -1, peer_ = -1;
    std::uint16_t port_ = 0;
    bool is_greeted_ = false, waits_for_answer_ = false;
    std::string received_;
    std::deque<std::int32_t> numbers_;
};

// ------------------------------------------------------------------------------------------------ the client
struct witness final : backend_listener {
    void on_reply(op_id id, reply&& r) noexcept override {
        if (tells) std::fprintf(stderr, "answer to %d: %s\n", static_cast<int>(id), r.code.message().c_str());
        require(++answers[id] == 1 && id >= 1 && id < next, "an answer to a request, and one", std::to_string(id));
        require(r.code || !r.sent, "a success is no unknown outcome");
    }
    void on_link(link_state s) noexcept override {
        if (tells) std::fprintf(stderr, "link %d\n", static_cast<int>(s));
        require(!is_over, "nothing follows the end of a session");
        is_over = s == link_state::expired || s == link_state::auth_failed;
        is_connected = s == link_state::connected;
    }
    void on_node_event(node_event, std::string_view path) noexcept override {
        require(path.size() < 1 << 20, "a path is not longer than what was sent");
    }
    void on_log(std::string_view) noexcept override {}

    std::map<op_id, int> answers;
    op_id next = 1;
    bool is_connected = false, is_over = false;
    const bool tells = std::getenv("ZKASIO_FUZZ_TELLS") != nullptr;
};

std::vector<request> some_requests() {
    get_request get;
    get.path = "/a";
    get.watch = true;
    children_request children;
    children.path = "/a";
    exists_request exists;
    exists.path = "/a";
    create_request create;
    create.path = "/a/n-";
    create.acl = zkasio::open_acl();
    create.mode = zkasio::create_mode::ephemeral_sequential;
    set_request set;
    set.path = "/a";
    get_acl_request get_acl;
    get_acl.path = "/a";
    remove_request remove;
    remove.path = "/a";
    multi_request multi;
    multi.ops = {multi_op(create), multi_op(set), multi_op(remove)};
    multi_read_request reads;
    reads.reads = {read_op(get), read_op(children)};
    return {get, children, exists, create, set, get_acl, multi, remove, reads, who_am_i_request(), get};
}

class conversation {
public:
    explicit conversation(server& with) : server_(with) {
        open_params p;
        p.servers = {{"127.0.0.1", "127.0.0.1", with.port()}};
        p.session_timeout = std::chrono::seconds(10);
        backend_->open(p);
    }

    void run(std::string_view script) {
        turn_until([&] { return server_.waits_for_handshake(); });
        while (!script.empty()) act(take_line(script));
        turns();
        backend_->close();
        for (op_id id = 1; id < seen_.next; ++id)
            require(seen_.answers[id] == 1, "each request has its answer", std::to_string(id));
    }

private:
    template <class Condition>
    void turn_until(Condition reached) {
        for (int i = 0; i < 20 && !reached(); ++i) turn(1);
    }
    void turns() {
        for (int i = 0; i < 3; ++i) turn(0);
    }
    void turn(int wait_ms) {
        const interest next = backend_->next_interest();
        pollfd p{next.descriptor, static_cast<short>(POLLIN | (next.write ? POLLOUT : 0)), 0};
        ::poll(&p, next.descriptor < 0 ? 0 : 1, wait_ms);
        backend_->process((p.revents & ~POLLOUT) != 0, (p.revents & ~POLLIN) != 0);
        server_.look();
        if (!seen_.is_connected || asked_) return;
        asked_ = true;
        backend_->begin_batch();
        for (const request& r : some_requests())
            if (!backend_->submit(seen_.next, r)) ++seen_.next;
        backend_->end_batch();
        server_.look();
    }

    void act(std::string_view line) {
        const auto word = [&line] {
            const std::size_t end = std::min(line.find(' '), line.size());
            const std::string_view found = line.substr(0, end);
            line.remove_prefix(std::min(end + 1, line.size()));
            return found;
        };
        const auto number = [&]() -> std::int64_t {
            const std::string_view text = word();
            std::int64_t n = 0;
            std::from_chars(text.data(), text.data() + text.size(), n);
            return n;
        };
        const auto bytes = [&] {
            std::string all;
            const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
            for (std::size_t i = 0; i + 1 < line.size(); i += 2)
                all += static_cast<char>((digit(line[i]) & 15) << 4 | (digit(line[i + 1]) & 15));
            return all;
        };
        const std::string_view what = word();
        if (what == "handshake" && server_.waits_for_handshake()) {
            const auto timeout = static_cast<std::int32_t>(number());
            server_.greet(timeout, number());
        } else if (what == "bytes") {
            server_.send(bytes());
        } else if (server_.waits_for_handshake() && !what.empty()) {
            server_.greet(10'000, 7);
            turn_until([&] { return seen_.is_connected; });
        }
        if (what == "answer") {
            const auto failure = static_cast<std::int32_t>(number());
            server_.answer(failure, bytes());
        }
        if (what == "answer-to") {
            const auto xid = static_cast<std::int32_t>(number()), failure = static_cast<std::int32_t>(number());
            server_.packet(xid, failure, bytes());
        }
        if (what == "event") {
            const auto type = static_cast<std::int32_t>(number());
            server_.event(type, line);
        }
        if (what == "cut") server_.cut();
        turns();
        if (what == "cut") turn_until([&] { return server_.waits_for_handshake(); });
    }

    server& server_;
    witness seen_;
    std::unique_ptr<backend> backend_ = make_c_backend(seen_);
    bool asked_ = false;
};

// An exception that nobody catches is ours, though the library is among the callers: it calls us back.
[[noreturn]] void on_exception() noexcept {
    is_ours = true;
    std::abort();
}

[[noreturn]] void child(std::string_view script) {
    std::set_terminate(on_exception);
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) ::signal(number, on_signal);
    ::__sanitizer_set_death_callback(on_death);
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(20);  // what hangs is a finding
    server peer;
    conversation(peer).run(script);
    hand_over_coverage();
    ::_exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
    // The library allocates what a server's length says, and goes on without where that is refused.
    static std::vector<char*> more(*arguments, *arguments + *count);
    static char no_limit[] = "-rss_limit_mb=0", none_at_once[] = "-malloc_limit_mb=0";
    more.insert(more.end(), {no_limit, none_at_once, nullptr});
    *arguments = more.data();
    *count += 2;
    constexpr int both_ways = PROT_READ | PROT_WRITE;
    require(::mmap(of_child, counters, both_ways, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == of_child,
            "counters are shared");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const pid_t pid = ::fork();
    if (pid == 0) child(view(data, size));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) require(errno == EINTR, "the child ends");  // libFuzzer has a timer
    static std::uint64_t all = 0, in_library = 0;
    ++all;
    const bool is_fine = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == died_in_library);
    if (is_fine && WEXITSTATUS(status) == died_in_library) ++in_library;
    if (all % 10'000 == 0)
        std::fprintf(stderr, "%llu of %llu ended the C library\n", static_cast<unsigned long long>(in_library),
                     static_cast<unsigned long long>(all));
    require(is_fine, "the child has failed", std::to_string(status));
    return 0;
}

// Read by the sanitizers before main(): crashes end in on_signal().
extern "C" const char* __asan_default_options() {  // NOLINT
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:allocator_may_return_null=1:"
           "max_allocation_size_mb=512:detect_stack_use_after_return=0:detect_leaks=0";
}
