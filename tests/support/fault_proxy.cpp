#include "support/fault_proxy.hpp"

#include <asio/connect.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <array>
#include <deque>

namespace zkasio::test {

using asio::ip::tcp;

struct fault_proxy::link {
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

fault_proxy::fault_proxy(const std::string& server)
    : server_(asio::ip::make_address(server.substr(0, server.rfind(':'))),
              static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))),
      acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
      port_(acceptor_.local_endpoint().port()) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
}

fault_proxy::~fault_proxy() {
    io_.stop();
    thread_.join();
    // What is held back holds its link.
    for (const auto& weak : links_)
        if (const auto l = weak.lock()) std::exchange(l->held_back, {});
}

void fault_proxy::plan_connections(std::function<plan(std::size_t)> planner) {
    const std::lock_guard lock(mutex_);
    planner_ = std::move(planner);
}

std::size_t fault_proxy::connections() const {
    const std::lock_guard lock(mutex_);
    return connections_;
}

void fault_proxy::cut_all(end how) {
    asio::post(io_, [this, how] {
        for (const auto& weak : links_)
            if (const auto l = weak.lock()) {
                l->cut(how);
                std::exchange(l->held_back, {});
            }
        links_.clear();
    });
}

void fault_proxy::silence(bool on) {
    asio::post(io_, [this, on] {
        silent_ = on;
        if (on) return;
        for (const auto& weak : links_)
            if (const auto l = weak.lock())
                for (const auto& resume : std::exchange(l->held_back, {})) resume();
    });
}

void fault_proxy::delay(std::chrono::milliseconds each_way) {
    asio::post(io_, [this, each_way] { delay_ = each_way; });
}

void fault_proxy::accept() {
    acceptor_.async_accept([this](std::error_code failed, tcp::socket client) {
        if (failed) return;
        plan what;
        {
            const std::lock_guard lock(mutex_);
            if (planner_) what = planner_(connections_);
            ++connections_;
        }
        tcp::socket server(io_);
        std::error_code refused;
        server.connect(server_, refused);
        if (!refused) {
            std::error_code ignored;
            client.set_option(tcp::no_delay(true), ignored);
            server.set_option(tcp::no_delay(true), ignored);
            const auto l = std::make_shared<link>(std::move(client), std::move(server), what);
            links_.push_back(l);
            pump(l, true);
            pump(l, false);
        }
        accept();
    });
}

void fault_proxy::arrive(const std::shared_ptr<link>& l, bool requests) {
    if (silent_) return l->held_back.push_back([this, l, requests] { arrive(l, requests); });
    auto& travelling = requests ? l->requests_travelling : l->replies_travelling;
    std::error_code broken;
    asio::write(requests ? l->server : l->client, asio::buffer(travelling.front()), broken);
    travelling.pop_front();
    if (broken) l->cut(end::fin);
}

void fault_proxy::pump(const std::shared_ptr<link>& l, bool requests) {
    tcp::socket& from = requests ? l->client : l->server;
    auto& buffer = requests ? l->request_buffer : l->reply_buffer;
    from.async_read_some(asio::buffer(buffer), [this, l, requests](std::error_code failed, std::size_t n) {
        if (failed) return l->cut(end::fin);
        if (delay_ > std::chrono::milliseconds::zero()) {  // what follows is on its way meanwhile
            auto& travelling = requests ? l->requests_travelling : l->replies_travelling;
            travelling.emplace_back((requests ? l->request_buffer : l->reply_buffer).data(), n);
            const auto timer = std::make_shared<asio::steady_timer>(io_, delay_);
            timer->async_wait([this, l, requests, timer](std::error_code) { arrive(l, requests); });
            return pump(l, requests);
        }
        auto forward = [this, l, requests, n] {
            std::size_t& passed = requests ? l->requests : l->replies;
            const std::size_t limit = requests ? l->what.cut_requests_after : l->what.cut_replies_after;
            const std::size_t let = std::min(n, limit - passed);
            passed += let;
            std::error_code broken;
            asio::write(requests ? l->server : l->client,
                        asio::buffer(requests ? l->request_buffer : l->reply_buffer, let), broken);
            if (broken || passed >= limit) return l->cut(broken ? end::fin : l->what.how);
            pump(l, requests);
        };
        if (silent_)
            l->held_back.push_back(forward);
        else
            forward();
    });
}

}  // namespace zkasio::test
