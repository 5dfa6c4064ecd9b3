#include <zkasio/testing/proxy.hpp>

#include <zkasio/asio_version.hpp>
#include <zkasio/testing/detail/endpoint.hpp>
#include <zkasio/testing/detail/relay.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace zkasio::testing {

using asio::ip::tcp;
using testing_detail::relay;
using testing_detail::relay_rules;

struct proxy::impl {
    explicit impl(const std::string& server)
        : server_(testing_detail::endpoint_of(server, "proxy")),
          acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
          retry_(io_),
          port_(acceptor_.local_endpoint().port()) {
        accept();
        thread_ = std::thread([this] { io_.run(); });
    }
    ~impl() {
        io_.stop();
        thread_.join();
    }

    void accept();
    void begin(tcp::socket client);
    template <class F>
    void for_each(F f) {
        std::erase_if(relays_, [](const std::weak_ptr<relay>& one) { return one.expired(); });
        for (const auto& weak : relays_)
            if (const auto one = weak.lock()) f(*one);
    }

    asio::io_context io_;
    tcp::endpoint server_;
    tcp::acceptor acceptor_;
    asio::steady_timer retry_;
    std::uint16_t port_;
    mutable std::mutex mutex_;
    std::function<plan(std::size_t)> planner_;  // guarded
    std::size_t connections_ = 0;               // guarded
    bool refusing_ = false;
    relay_rules rules_;
    std::vector<std::weak_ptr<relay>> relays_;
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
    asio::post(impl_->io_, [self = impl_.get(), how] { self->for_each([&](relay& r) { r.cut(how == end::rst); }); });
}

void proxy::refuse(bool on) {
    asio::post(impl_->io_, [self = impl_.get(), on] { self->refusing_ = on; });
}

void proxy::silence(bool on) {
    asio::post(impl_->io_, [self = impl_.get(), on] {
        self->rules_.silent = on;
        self->for_each([](relay& r) { r.rules_changed(); });
    });
}

void proxy::delay(any_duration each_way) {
    using namespace std::chrono_literals;
    const std::chrono::milliseconds delay = std::min<std::chrono::milliseconds>(each_way, 24h * 365);
    asio::post(impl_->io_, [self = impl_.get(), delay] { self->rules_.delay = delay; });
}

void proxy::impl::accept() {
    acceptor_.async_accept([this](std::error_code failed, tcp::socket client) {
        if (!failed) {
            begin(std::move(client));
            return accept();
        }
        // For example, no file descriptors are left: try again later.
        retry_.expires_after(std::chrono::milliseconds(50));
        retry_.async_wait([this](std::error_code) { accept(); });
    });
}

void proxy::impl::begin(tcp::socket client) {
    std::function<plan(std::size_t)> planner;
    std::size_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        planner = planner_;
        number = connections_++;
    }
    const plan what = planner ? planner(number) : plan();
    if (refusing_) {
        std::error_code ignored;
        client.set_option(asio::socket_base::linger(true, 0), ignored);
        client.close(ignored);
        return;
    }
    const auto made = std::make_shared<relay>(io_, std::move(client), rules_);
    made->limit(what.cut_requests_after, what.cut_replies_after, what.how == end::rst);
    std::erase_if(relays_, [](const std::weak_ptr<relay>& other) { return other.expired(); });
    relays_.push_back(made);
    made->begin(server_);
}

}  // namespace zkasio::testing
