#pragma once

#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/session.hpp>
#include <zkasio/testing/proxy.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zkasio::test {

/// The event loop of one test.
class event_loop {
public:
    virtual ~event_loop() = default;
    virtual asio::io_context& context() = 0;
    /// Runs until nothing is left to do. False: something still was at `give_up`, which handlers may change.
    virtual bool run_dry(const std::chrono::steady_clock::time_point& give_up) = 0;
};

/// The network between some clients and their servers, and what goes wrong with it: see testing::proxy.
class faulty_network {
public:
    virtual ~faulty_network() = default;
    virtual std::string address() const = 0;
    virtual void plan_connections(std::function<testing::proxy::plan(std::size_t)> planner) = 0;
    virtual void cut_all(testing::proxy::end how) = 0;
    virtual void refuse(bool on) = 0;
    virtual void silence(bool on) = 0;
    virtual void delay(std::chrono::milliseconds each_way) = 0;
    virtual std::size_t connections() const = 0;
};

/// What the tests of a program run in: an event loop and its time, and the servers that their clients find. Real ones,
/// unless the program has an object of another class of these, made before main(). The same tests then run there.
class surroundings {
public:
    virtual ~surroundings() = default;
    surroundings(const surroundings&) = delete;
    surroundings& operator=(const surroundings&) = delete;

    static surroundings& current() noexcept;

    virtual bool has_real_time() const = 0;
    /// The servers that tests share, "host:port,host:port".
    virtual std::string servers() = 0;
    /// Whether this program has begun a server for its tests, since nobody gave it one. That server stays.
    virtual bool has_own_server() const { return false; }
    /// Another test begins. What the test before has left may stay at real servers, which others use as well.
    virtual void begin_test() {}
    virtual std::unique_ptr<event_loop> make_loop() = 0;
    virtual client make_client(asio::any_io_executor executor, client_options options) = 0;
    virtual std::unique_ptr<faulty_network> make_network(const std::string& server) = 0;
    /// Ends the session at the servers; the client may not have learnt of it yet.
    virtual asio::awaitable<void> expire_session(client victim) = 0;
    /// The paths that the servers say they watch for clients, each once.
    virtual std::vector<std::string> watched_paths() = 0;
    /// A directory in which nobody but this program works. The servers are shared with others that run beside it.
    void own(std::string directory);
    /// What the servers keep in such directories for clients: a line for each ephemeral node and each path watched.
    virtual std::vector<std::string> kept_by_servers() = 0;
    /// How many requests the servers have received from this session; -1: they do not know it.
    virtual long requests_of(const session& s) = 0;

protected:
    surroundings() = default;
    /// Takes the place of the one there is, for as long as the program runs.
    static void use(surroundings& s) noexcept;
    bool owns_any() const;
    bool owns(const std::string& path) const;

private:
    mutable std::mutex owned_mutex_;
    std::vector<std::string> owned_;
};

}  // namespace zkasio::test
