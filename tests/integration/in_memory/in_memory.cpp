// Linked with the tests of tests/integration, this file lets them run over a fake_ensemble: the same tests then show
// that the kit which users test with does what a real server does, and need no time where a real server makes them
// wait.

#include "support/catch.hpp"
#include "support/surroundings.hpp"
#include "support/test_server.hpp"

#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using testing::fake_ensemble;

namespace {

using namespace std::chrono_literals;

std::uint64_t seed() {
    const char* const given = std::getenv("ZKASIO_SIM_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 1;
}

// ZKASIO_TEST_VIEW=/some/path: each client is a view of one, client::rooted(), and the tests see what it sees.
std::string view() {
    const char* const given = std::getenv("ZKASIO_TEST_VIEW");
    return given ? given : "";
}

// A path on the servers, as such a view has it; "" where it has none.
std::string shown(const std::string& path) {
    if (!path.starts_with(view())) return {};
    return path.size() == view().size() ? "/" : path.substr(view().size());
}

// The ensemble of all event loops of a test, one after another: its nodes stay, as those of a server do. A loop that did
// not run dry takes the ensemble along.
std::unique_ptr<fake_ensemble> kept;

fake_ensemble& ensemble() {
    if (!kept) throw std::logic_error("this test has an event loop of its own: in memory there is only test_loop");
    return *kept;
}

class loop_in_memory final : public event_loop {
public:
    loop_in_memory() {
        if (kept) return;
        kept = std::make_unique<fake_ensemble>(seed());
        // As the servers that tests start.
        kept->session_timeouts(1s, 60s);
        kept->check_containers_every(1s);
        if (!view().empty()) kept->create(view());
    }
    ~loop_in_memory() override {
        if (!dry_) kept.reset();
    }

    asio::io_context& context() override { return ensemble().context(); }
    bool run_dry(const std::chrono::steady_clock::time_point& give_up) override {
        dry_ = false;
        try {
            ensemble().run_dry(give_up - std::chrono::steady_clock::now());
            dry_ = true;
        } catch (const std::runtime_error& e) {
            WARN(e.what());
        }
        return dry_;
    }

private:
    bool dry_ = false;
};

// Refers to a client of the test without keeping it open.
class known_client {
public:
    explicit known_client(const client& zk) : core_(detail::access::core_of(zk)), empty_(zk) {
        const client moved = std::move(empty_);
    }
    /// Calls f(client), unless it is gone.
    template <class Function>
    void visit(Function f) const {
        if (auto core = core_.lock()) f(borrowed(empty_, std::move(core)));
    }

private:
    struct borrowed : client {
        borrowed(const client& empty, std::shared_ptr<detail::core> core) : client(empty) { core_ = std::move(core); }
    };
    std::weak_ptr<detail::core> core_;
    client empty_;  // moved from
};

class network_in_memory;
std::map<std::string, network_in_memory*> networks;  // by address
int next_port = 30'000;

class network_in_memory final : public faulty_network {
public:
    network_in_memory() : address_("127.0.0.1:" + std::to_string(next_port++)) {
        networks[address_] = this;
    }
    ~network_in_memory() override { networks.erase(address_); }

    void add(const client& zk) {
        ++connections_;
        clients_.emplace_back(zk);
        if (silent_ || refuses_) ensemble().hold_down(zk);
    }

    std::string address() const override { return address_; }
    void plan_connections(std::function<testing::proxy::plan(std::size_t)>) override {
        throw std::logic_error("a network in memory counts no bytes: give the test the tag [real-bytes]");
    }
    void delay(std::chrono::milliseconds) override {
        throw std::logic_error("a network in memory has no delays: give the test the tag [real-bytes]");
    }
    void cut_all(testing::proxy::end) override {
        for_each_client([this](const client& zk) {
            if (silent_ || refuses_)
                ensemble().hold_down(zk);
            else
                ensemble().cut(zk);
        });
    }
    void refuse(bool on) override { refuses_ = on; }
    void silence(bool on) override {
        silent_ = on;
        for_each_client([on](const client& zk) {
            if (on)
                ensemble().silence(zk);
            else
                ensemble().let_in(zk);
        });
    }
    std::size_t connections() const override { return connections_; }

private:
    template <class Function>
    void for_each_client(Function f) {
        for (const known_client& one : clients_) one.visit(f);
    }

    std::string address_;
    std::vector<known_client> clients_;
    std::size_t connections_ = 0;
    bool silent_ = false, refuses_ = false;
};

class surroundings_in_memory final : public surroundings {
public:
    surroundings_in_memory() { use(*this); }

    bool has_real_time() const override { return false; }
    std::string servers() override { return "127.0.0.1:2181"; }
    void begin_test() override { kept.reset(); }
    std::unique_ptr<event_loop> make_loop() override { return std::make_unique<loop_in_memory>(); }

    client make_client(asio::any_io_executor executor, client_options options) override {
        const std::string servers = options.servers();
        client made = ensemble().client(std::move(executor), std::move(options));
        clients_.emplace_back(made);
        const std::string address = servers.substr(0, servers.find('/'));
        if (const auto network = networks.find(address); network != networks.end())
            network->second->add(made);
        else if (address.find(shared_servers()) == address.npos)
            ensemble().hold_down(made);  // nobody is there
        return made.rooted(view());
    }

    std::unique_ptr<faulty_network> make_network(const std::string&) override {
        return std::make_unique<network_in_memory>();
    }

    asio::awaitable<void> expire_session(client victim) override {
        co_await victim.connected();
        ensemble().expire(victim);
    }

    std::vector<std::string> watched_paths() override {
        std::vector<std::string> all = ensemble().watched_paths();
        for (std::string& path : all) path = shown(path);
        return all;
    }

    std::vector<std::string> kept_by_servers() override {
        std::vector<std::string> all;
        if (!kept) return all;
        if (kept->connections() > 0) all.push_back(std::to_string(kept->connections()) + " connections");
        if (kept->sessions() > 0) all.push_back(std::to_string(kept->sessions()) + " sessions");
        for (const std::string& path : kept->paths())
            if (const auto node = kept->stat(path); node && node->ephemeral_owner != 0)
                all.push_back("node " + shown(path));
        for (const std::string& path : kept->watched_paths()) all.push_back("watch of " + shown(path));
        return all;
    }

    long requests_of(const session& s) override {
        long requests = -1;
        for (const known_client& one : clients_)
            one.visit([&](const client& zk) {
                if (ensemble().session_id(zk) == s.id()) requests = static_cast<long>(ensemble().requests(zk));
            });
        return requests;
    }

private:
    std::vector<known_client> clients_;
};

surroundings_in_memory in_memory;

}  // namespace
