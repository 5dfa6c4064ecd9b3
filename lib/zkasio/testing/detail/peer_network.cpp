#include <zkasio/testing/detail/peer_network.hpp>

#include <zkasio/testing/ensemble.hpp>

#include <asio/post.hpp>

#include <future>
#include <system_error>

namespace zkasio::testing_detail {

using asio::ip::tcp;

namespace {

std::string own_address(int server) { return "127.0.0." + std::to_string(server + 1); }

// Of the same length as own_address(), for up to nine servers.
std::string proxy_address(int from, int to) {
    return "127." + std::to_string(from + 1) + ".1." + std::to_string(to + 1);
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < size; ++i) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
    return n;
}

}  // namespace

struct peer_network::gate {
    gate(asio::io_context& io, int f, int t, tcp::acceptor a, std::uint16_t p, bool e)
        : from(f), to(t), port(p), for_elections(e), acceptor(std::move(a)), retry(io) {}
    int from, to;
    std::uint16_t port;
    bool for_elections, open = true;
    tcp::acceptor acceptor;
    asio::steady_timer retry;
    std::vector<std::weak_ptr<relay>> relays;
};

// QuorumCnxManager.InitialMessage: version (-65536 or -65535), the sender's number, the length of the address,
// "address:port". A message whose first number is not negative is from a server before 3.5, without an address.
bool replace_own_address(std::string& message, const std::string& by) {
    constexpr std::size_t head = 8 + 8 + 4, most = 2048;
    if (message.size() < 8) return false;
    if ((message[0] & 0x80) == 0) return true;
    if (message.size() < head) return false;
    const std::uint64_t length = number_at(message, 16, 4);
    if (length > most) return true;  // not such a message
    if (message.size() < head + length) return false;
    const std::size_t port = message.rfind(':', head + static_cast<std::size_t>(length) - 1);
    if (port != std::string::npos && port == head + by.size()) message.replace(head, by.size(), by);
    return true;
}

peer_network::peer_network(int servers)
    : ports_(static_cast<std::size_t>(servers)), cut_(ports_.size() * ports_.size(), 0) {
    for (int to = 0; to < servers; ++to) listen(to);
    for (const auto& each : gates_) accept(*each);
    // run() does not return before stop(): the acceptors are always waiting.
    thread_ = std::thread([this] { io_.run(); });
}

peer_network::~peer_network() {
    io_.stop();
    thread_.join();
}

// Chooses ports of the server at which the proxies to this server can listen as well.
void peer_network::listen(int to) {
    const int servers = static_cast<int>(ports_.size());
    for (const bool for_elections : {false, true}) {
        for (int attempt = 1;; ++attempt) {
            const std::uint16_t port = testing::free_port(own_address(to));
            std::vector<std::unique_ptr<gate>> made;
            try {
                for (int from = 0; from < servers; ++from) {
                    if (from == to) continue;
                    tcp::acceptor a(io_, tcp::endpoint(asio::ip::make_address(proxy_address(from, to)), port));
                    made.push_back(std::make_unique<gate>(io_, from, to, std::move(a), port, for_elections));
                }
            } catch (const std::system_error&) {
                if (attempt == 20) throw;
                continue;
            }
            for (auto& each : made) gates_.push_back(std::move(each));
            ports& mine = ports_[static_cast<std::size_t>(to)];
            (for_elections ? mine.election : mine.quorum) = port;
            break;
        }
    }
}

std::string peer_network::hosts(int server) const {
    std::string text;
    for (int other = 0; other < static_cast<int>(ports_.size()); ++other)
        text += (other == server ? own_address(server) : proxy_address(server, other)) + ' ' + name_of(other) + '\n';
    return text;
}

void peer_network::connect(int a, int b, bool on) {
    cut_.at(index(a, b)) = cut_.at(index(b, a)) = on ? 0 : 1;
    std::promise<void> done;
    asio::post(io_, [&] {
        for (const auto& g : gates_) {
            if (!(g->from == a && g->to == b) && !(g->from == b && g->to == a)) continue;
            g->open = on;
            if (on) continue;
            for (const auto& weak : g->relays)
                if (const auto one = weak.lock()) one->cut(true);
        }
        done.set_value();
    });
    done.get_future().get();
}

void peer_network::accept(gate& g) {
    g.acceptor.async_accept([this, &g](std::error_code failed, tcp::socket from) {
        if (!failed) {
            begin(g, std::move(from));
            return accept(g);
        }
        g.retry.expires_after(std::chrono::milliseconds(50));
        g.retry.async_wait([this, &g](std::error_code) { accept(g); });
    });
}

void peer_network::begin(gate& g, tcp::socket from) {
    if (!g.open) {
        std::error_code ignored;
        from.set_option(asio::socket_base::linger(true, 0), ignored);
        from.close(ignored);
        return;
    }
    const auto made = std::make_shared<relay>(io_, std::move(from), rules_);
    // The receiver connects back from `to` to `from`.
    if (g.for_elections)
        made->edit_beginning([by = proxy_address(g.to, g.from)](std::string& message) {
            return replace_own_address(message, by);
        });
    std::erase_if(g.relays, [](const std::weak_ptr<relay>& other) { return other.expired(); });
    g.relays.push_back(made);
    made->begin(tcp::endpoint(asio::ip::make_address(own_address(g.to)), g.port));
}

}  // namespace zkasio::testing_detail
