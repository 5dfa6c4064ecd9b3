#include <zkasio/detail/connection/request_numbers.hpp>

#include <zkasio/detail/base/owned_descriptor.hpp>
#include <zkasio/detail/connection/c_conversions.hpp>

#include <zookeeper/zookeeper.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace zkasio::detail {
namespace {

// Other users of the library, of whose requests nothing is known, get half of the way to the reserved numbers.
constexpr std::int64_t share_of_others = 2;
// From here on the numbers are used up.
constexpr std::int64_t close_by = 4096;
// At the beginning nothing but the time is known, at which the library begins. Most processes never look.
constexpr std::int64_t at_first = 100'000'000;
constexpr std::int64_t after_failure = 1000;  // and twice as many after each further one: a look may take 0.1 s

std::int32_t number_at(const unsigned char* bytes) noexcept {
    std::uint32_t n = 0;
    for (int i = 0; i < 4; ++i) n = n << 8 | bytes[i];
    return static_cast<std::int32_t>(n);
}

bool becomes_readable(int descriptor) noexcept {
    pollfd p{descriptor, POLLIN, 0};
    return ::poll(&p, 1, 100) == 1;  // over the loopback: at once, except on a machine that is very busy
}

// The server of the throw-away handle.
class listener {
public:
    listener() noexcept : accepts_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        if (::bind(accepts_.get(), address, size) == 0 && ::listen(accepts_.get(), 1) == 0 &&
            ::getsockname(accepts_.get(), address, &size) == 0)
            port_ = ntohs(where.sin_port);
    }
    int port() const noexcept { return port_; }  // 0: there is none

    bool accept() noexcept {
        if (becomes_readable(accepts_.get()))
            peer_ = owned_descriptor(::accept4(accepts_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        return peer_.get() >= 0;
    }
    bool read(unsigned char* to, std::size_t n) noexcept {
        while (n > 0 && becomes_readable(peer_.get())) {
            const ssize_t got = ::recv(peer_.get(), to, n, MSG_DONTWAIT);
            if (got <= 0) return false;
            to += got;
            n -= static_cast<std::size_t>(got);
        }
        return n == 0;
    }
    bool answer_handshake() noexcept {
        std::array<unsigned char, 41> answer{};
        answer[3] = answer.size() - 4;
        answer[10] = 0x27;  // a session timeout of 10 s
        answer[19] = 1;     // a session's id
        answer[23] = 16;    // the length of its password
        return ::send(peer_.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == ssize_t(answer.size());
    }
    void hang_up() noexcept { peer_ = owned_descriptor(); }

private:
    owned_descriptor accepts_, peer_;
    int port_ = 0;
};

void ignore_event(zhandle_t*, int, int, const char*, void*) noexcept {}
void ignore_log(const char*) noexcept {}
void ignore_result(int, const char*, int, const ::Stat*, const void*) noexcept {}

class throw_away_handle {
public:
    explicit throw_away_handle(int port) noexcept {
        std::array<char, 32> server{};
        std::snprintf(server.data(), server.size(), "127.0.0.1:%d", port);
        zh_ = zookeeper_init2(server.data(), &ignore_event, 10'000, nullptr, nullptr, ZOO_NO_LOG_CLIENTENV,
                              &ignore_log);
        if (zh_) zoo_set_servers_resolution_delay(zh_, -1);  // fact 1
    }
    ~throw_away_handle() {
        if (zh_) zookeeper_close(zh_);
    }
    throw_away_handle(const throw_away_handle&) = delete;
    throw_away_handle& operator=(const throw_away_handle&) = delete;

    bool exists() const noexcept { return zh_ != nullptr; }
    void turn(int events) noexcept {
        int descriptor = -1, wanted = 0;
        timeval pause{};
        zookeeper_interest(zh_, &descriptor, &wanted, &pause);
        if (events != 0) zookeeper_process(zh_, events);
    }
    bool is_connected() const noexcept { return zoo_state(zh_) == ZOO_CONNECTED_STATE; }
    void ask() noexcept {
        zoo_aget(zh_, "/", 0, &ignore_result, nullptr);
        turn(0);
    }

private:
    zhandle_t* zh_ = nullptr;
};

}  // namespace

std::optional<std::int32_t> look_at_next_number() noexcept {
    listener server;
    throw_away_handle client(server.port());
    if (server.port() == 0 || !client.exists()) return std::nullopt;
    client.turn(0);  // connects
    if (!server.accept()) return std::nullopt;
    client.turn(ZOOKEEPER_WRITE);  // sends the handshake
    std::array<unsigned char, 49> handshake{};
    std::optional<std::int32_t> next;
    if (server.read(handshake.data(), handshake.size()) && server.answer_handshake()) {
        for (int i = 0; i < 10 && !client.is_connected(); ++i) client.turn(ZOOKEEPER_READ);
        std::array<unsigned char, 8> begin{};  // of the request: its length, and its number
        if (client.is_connected()) client.ask();
        if (client.is_connected() && server.read(begin.data(), begin.size()))
            next = static_cast<std::int32_t>(static_cast<std::uint32_t>(number_at(&begin[4])) + 1);
    }
    // zookeeper_close() says good-bye to a server that is there, and waits for its answer.
    server.hang_up();
    for (int i = 0; i < 10 && client.is_connected(); ++i) client.turn(ZOOKEEPER_READ);
    return next;
}

void step_over_reserved_numbers(_zhandle* zh) noexcept {
    const auto at_beginning = [] { return requests_before_reserved(static_cast<std::int32_t>(std::time(nullptr))); };
    std::int64_t& left = zkasio_the_c_library_1()->numbers_left;
    std::int64_t& until_next_look = zkasio_the_c_library_1()->until_next_look;
    if (until_next_look == 0) {  // the first request
        left = std::min(at_first, at_beginning() / share_of_others);
        until_next_look = after_failure;
    }
    if (left-- > 0) return;
    const std::optional<std::int32_t> next = look_at_next_number();
    if (!next) {
        left = until_next_look;
        until_next_look = std::min(2 * until_next_look, at_first);
        return;
    }
    until_next_look = after_failure;
    std::int64_t distance = requests_before_reserved(*next);
    if (distance <= close_by) {
        // The library takes a number, and refuses the path, with any chroot. It never gives -1: it begins again then.
        for (std::int64_t number = *next; number < -1; ++number) zoo_aget(zh, "//", 0, &ignore_result, nullptr);
        distance = at_beginning();
    }
    left = distance / share_of_others;
}

}  // namespace zkasio::detail
