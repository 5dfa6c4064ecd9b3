#include <zkasio/detail/connection/nearer_server.hpp>

#include <zkasio/detail/base/random_engine.hpp>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

namespace zkasio::detail {

std::vector<std::string> next_round(const std::vector<server_address>& servers, const std::string& last) {
    std::map<int, std::vector<std::string>> ranks;
    for (const server_address& s : servers) {
        std::vector<std::string>& of = ranks[s.rank];
        if (std::find(of.begin(), of.end(), endpoint_of(s)) == of.end()) of.push_back(endpoint_of(s));
    }
    std::vector<std::string> all;
    for (auto& [rank, of] : ranks) {
        if (const auto at = std::find(of.begin(), of.end(), last); at != of.end())
            std::rotate(of.begin(), at + 1, of.end());
        for (std::string& endpoint : of)
            if (std::find(all.begin(), all.end(), endpoint) == all.end()) all.push_back(std::move(endpoint));
    }
    return all;
}

struct nearer_server::search {
    explicit search(const strand_type& on) : timer(on), socket(on) {}

    nearer_server::pace pace{};
    std::vector<server_address> among;
    std::function<void(const server_address&)> found;
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, strand_type>
        timer;
    asio::basic_stream_socket<asio::ip::tcp, strand_type> socket;
    std::string answer;
    std::size_t asked = 0;  // which of them
    bool attempts = false, succeeded = false;
};

struct nearer_server::step {
    std::shared_ptr<search> of;
    std::shared_ptr<void> keep_alive;
};

void nearer_server::look(std::shared_ptr<void> keep_alive, pace p, std::vector<server_address> among,
                         std::function<void(const server_address&)> found) {
    stop();
    if (among.empty()) return;
    current_ = std::make_shared<search>(strand_);
    current_->pace = p;
    current_->among = std::move(among);
    current_->found = std::move(found);
    wait({current_, std::move(keep_alive)}, p.first);
}

void nearer_server::stop() noexcept {
    const auto s = std::exchange(current_, nullptr);
    if (!s) return;
    std::error_code ignored;
    s->socket.close(ignored);
    s->timer.cancel();
}

void nearer_server::wait(step s, std::chrono::milliseconds pause) {
    const auto spread = std::chrono::duration<double, std::milli>(pause) * jitter();
    const auto longer = pause * (1 << tried_);
    s.of->timer.expires_after(longer + std::chrono::duration_cast<std::chrono::milliseconds>(spread));
    s.of->timer.async_wait([this, s](std::error_code cancelled) {
        if (!cancelled && s.of == current_ && wanted_()) attempt(s);
    });
}

// The attempt ends with the answer, or with the patience. Twice in a row, the same server is asked.
void nearer_server::attempt(step s) {
    search& of = *s.of;
    if (!of.succeeded) of.asked = jitter_engine()() % of.among.size();
    const server_address& to = of.among[of.asked];
    of.attempts = true;
    of.answer.clear();
    std::error_code failed;
    const auto address = asio::ip::make_address(to.address, failed);
    if (failed) return attempted(std::move(s), false);
    const asio::ip::tcp::endpoint there(address, to.port);
    of.socket.open(there.protocol(), failed);
    if (!failed) ::fcntl(of.socket.native_handle(), F_SETFD, FD_CLOEXEC);
    of.socket.async_connect(there, [this, s](std::error_code code) {
        if (!wanted_()) return;
        if (code || through_tls_) return attempted(s, !code);
        connected(s);
    });
    of.timer.expires_after(of.pace.patience);
    of.timer.async_wait([this, s](std::error_code cancelled) {
        if (!cancelled) attempted(s, false);
    });
}

// A server that serves says in which mode; one that is asked to keep the command to itself says so.
void nearer_server::connected(step s) {
    static constexpr std::string_view question = "srvr";
    static constexpr std::size_t most = 4096;
    search& of = *s.of;
    asio::async_write(of.socket, asio::buffer(question), [this, s](std::error_code failed, std::size_t) {
        if (failed) return attempted(s, false);
        auto answered = [this, s](std::error_code, std::size_t) {
            const auto says = [&s](std::string_view text) { return s.of->answer.find(text) != std::string::npos; };
            attempted(s, (says("Mode: ") && !says("Mode: read-only")) || says("whitelist"));
        };
        asio::async_read(s.of->socket, asio::dynamic_buffer(s.of->answer, most), std::move(answered));
    });
}

void nearer_server::attempted(step s, bool success) {
    search& of = *s.of;
    if (s.of != current_ || !std::exchange(of.attempts, false)) return;
    std::error_code ignored;
    of.socket.close(ignored);
    const bool twice = std::exchange(of.succeeded, success) && success;
    const auto pause = success ? of.pace.again : of.pace.first;
    if (!twice) return wait(std::move(s), pause);
    const auto found = std::move(of.found);
    const server_address up = of.among[of.asked];
    stop();
    found(up);
}

}  // namespace zkasio::detail
