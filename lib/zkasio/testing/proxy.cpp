#include <zkasio/testing/proxy.hpp>

#include <zkasio/asio_version.hpp>
#include <zkasio/error.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace zkasio::testing {

using asio::ip::tcp;

struct proxy::link {
    link(tcp::socket c, tcp::socket s, plan p) : client(std::move(c)), server(std::move(s)), what(p) {}

    void cut(end how) {
        for (tcp::socket* s : {&client, &server}) {
            std::error_code ignored;
            if (how == end::rst) s->set_option(asio::socket_base::linger(true, 0), ignored);
            s->close(ignored);
        }
    }

    tcp::socket client, server;
    plan what;
    std::size_t requests = 0, replies = 0;
    std::array<char, 16384> request_buffer, reply_buffer;
    std::deque<std::string> requests_travelling, replies_travelling;  // with a delay
    std::vector<std::function<void()>> held_back;                     // while silent
};

namespace {

tcp::endpoint endpoint_of(const std::string& server) {
    const auto colon = server.rfind(':');
    std::error_code is_name;
    const auto address = asio::ip::make_address(server.substr(0, colon), is_name);
    const std::string port = colon == std::string::npos ? std::string() : server.substr(colon + 1);
    const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (is_name || !is_number || std::stoul(port) > 65535)
        throw error(errc::invalid_argument, "proxy", {}, "\"" + server + "\" is no \"address:port\"");
    return {address, static_cast<std::uint16_t>(std::stoul(port))};
}

}  // namespace

struct proxy::impl {
    explicit impl(const std::string& server)
        : server_(endpoint_of(server)),
          acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
          port_(acceptor_.local_endpoint().port()) {
        accept();
        thread_ = std::thread([this] { io_.run(); });
    }
    ~impl() {
        io_.stop();
        thread_.join();
        // What is held back holds its link.
        for (const auto& weak : links_)
            if (const auto l = weak.lock()) std::exchange(l->held_back, {});
    }

    void accept();
    void begin(tcp::socket client, plan what);
    void arrive(const std::shared_ptr<link>& l, bool requests);
    void pump(const std::shared_ptr<link>& l, bool requests);
    void delayed(const std::shared_ptr<link>& l, bool requests, std::size_t n);
    void forward(const std::shared_ptr<link>& l, bool requests, std::size_t n);

    asio::io_context io_;
    tcp::endpoint server_;
    tcp::acceptor acceptor_;
    std::uint16_t port_;
    mutable std::mutex mutex_;
    std::function<plan(std::size_t)> planner_;  // guarded
    std::size_t connections_ = 0;               // guarded
    bool silent_ = false, refusing_ = false;
    std::chrono::milliseconds delay_{0};
    std::vector<std::weak_ptr<link>> links_;
    std::thread thread_;
};

proxy::proxy(const std::string& server) : impl_(std::make_unique<impl>(server)) {}
proxy::~proxy() = default;

std::string proxy::address() const { return "127.0.0.1:" + std::to_string(impl_->port_); }

void proxy::plan_connections(std::function<plan(std::size_t)> planner) {
    const std::lock_guard lock(impl_->mutex_);
    impl_->planner_ = std::move(planner);
}

std::size_t proxy::connections() const {
    const std::lock_guard lock(impl_->mutex_);
    return impl_->connections_;
}

void proxy::cut_all(end how) {
    asio::post(impl_->io_, [self = impl_.get(), how] {
        for (const auto& weak : self->links_)
            if (const auto l = weak.lock()) {
                l->cut(how);
                std::exchange(l->held_back, {});
            }
        self->links_.clear();
    });
}

void proxy::refuse(bool on) {
    asio::post(impl_->io_, [self = impl_.get(), on] { self->refusing_ = on; });
}

void proxy::silence(bool on) {
    asio::post(impl_->io_, [self = impl_.get(), on] {
        self->silent_ = on;
        if (on) return;
        for (const auto& weak : self->links_)
            if (const auto l = weak.lock())
                for (const auto& resume : std::exchange(l->held_back, {})) resume();
    });
}

void proxy::delay(std::chrono::milliseconds each_way) {
    asio::post(impl_->io_, [self = impl_.get(), each_way] { self->delay_ = each_way; });
}

void proxy::impl::accept() {
    acceptor_.async_accept([this](std::error_code failed, tcp::socket client) {
        if (failed) return;
        plan what;
        {
            const std::lock_guard lock(mutex_);
            if (planner_) what = planner_(connections_);
            ++connections_;
        }
        begin(std::move(client), what);
        accept();
    });
}

void proxy::impl::begin(tcp::socket client, plan what) {
    std::error_code ignored;
    if (refusing_) {
        client.set_option(asio::socket_base::linger(true, 0), ignored);
        client.close(ignored);
        return;
    }
    tcp::socket server(io_);
    std::error_code refused;
    server.connect(server_, refused);
    if (refused) return;
    client.set_option(tcp::no_delay(true), ignored);
    server.set_option(tcp::no_delay(true), ignored);
    const auto l = std::make_shared<link>(std::move(client), std::move(server), what);
    std::erase_if(links_, [](const std::weak_ptr<link>& other) { return other.expired(); });
    links_.push_back(l);
    pump(l, true);
    pump(l, false);
}

void proxy::impl::arrive(const std::shared_ptr<link>& l, bool requests) {
    if (silent_) return l->held_back.push_back([this, l, requests] { arrive(l, requests); });
    auto& travelling = requests ? l->requests_travelling : l->replies_travelling;
    std::error_code broken;
    asio::write(requests ? l->server : l->client, asio::buffer(travelling.front()), broken);
    travelling.pop_front();
    if (broken) l->cut(end::fin);
}

void proxy::impl::pump(const std::shared_ptr<link>& l, bool requests) {
    tcp::socket& from = requests ? l->client : l->server;
    auto& buffer = requests ? l->request_buffer : l->reply_buffer;
    from.async_read_some(asio::buffer(buffer), [this, l, requests](std::error_code failed, std::size_t n) {
        if (failed) return l->cut(end::fin);
        if (delay_ > std::chrono::milliseconds::zero()) return delayed(l, requests, n);
        if (silent_)
            l->held_back.push_back([this, l, requests, n] { forward(l, requests, n); });
        else
            forward(l, requests, n);
    });
}

// What follows is on its way meanwhile.
void proxy::impl::delayed(const std::shared_ptr<link>& l, bool requests, std::size_t n) {
    auto& travelling = requests ? l->requests_travelling : l->replies_travelling;
    travelling.emplace_back((requests ? l->request_buffer : l->reply_buffer).data(), n);
    const auto timer = std::make_shared<asio::steady_timer>(io_, delay_);
    timer->async_wait([this, l, requests, timer](std::error_code) { arrive(l, requests); });
    pump(l, requests);
}

void proxy::impl::forward(const std::shared_ptr<link>& l, bool requests, std::size_t n) {
    std::size_t& passed = requests ? l->requests : l->replies;
    const std::size_t limit = requests ? l->what.cut_requests_after : l->what.cut_replies_after;
    const std::size_t let = std::min(n, limit - passed);
    passed += let;
    std::error_code broken;
    asio::write(requests ? l->server : l->client, asio::buffer(requests ? l->request_buffer : l->reply_buffer, let),
                broken);
    if (broken || passed >= limit) return l->cut(broken ? end::fin : l->what.how);
    pump(l, requests);
}

}  // namespace zkasio::testing
