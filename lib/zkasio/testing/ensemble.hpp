#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/testing/background_job.hpp>

#include <asio/async_result.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::testing {

/// Options for starting servers; the defaults are for Debian's packages (zookeeper, default-jre-headless). Every setter
/// returns the object.
class server_options {
public:
    /// The Java program: by default $JAVA_HOME/bin/java, or `java` from $PATH.
    server_options& java(std::string program) { java_ = std::move(program); return *this; }
    /// The class path of ZooKeeper and of the classes that it needs: by default $ZKASIO_ZOOKEEPER_CLASSPATH, or
    /// /usr/share/java/zookeeper.jar.
    server_options& class_path(std::string path) { class_path_ = std::move(path); return *this; }
    /// tickTime (500 ms): a session timeout is two ticks at least, and twenty at most.
    server_options& tick(any_duration t) { tick_ = t; return *this; }
    /// Adds a line to zoo.cfg, "minSessionTimeout=100". May be called more than once.
    server_options& line(std::string of_the_configuration) {
        lines_.push_back(std::move(of_the_configuration));
        return *this;
    }

    /// The servers talk to each other through proxies of this process, so that ensemble::partition() can cut some off
    /// from others. The servers then lose each other, too, when this process is stopped, in a debugger, say. Needs Java
    /// 9 or later, and addresses of 127.0.0.0/8 beyond 127.0.0.1, as Linux has them.
    server_options& partitions(bool on = true) { partitions_ = on; return *this; }

    /// A server without a quorum reads, for clients with client_options::read_only(). All sessions then begin as
    /// local ones, of one server, until they create an ephemeral node: one expires if its client loses that server.
    server_options& read_without_quorum(bool on = true) { read_without_quorum_ = on; return *this; }

    /// The servers speak TLS as well, at ensemble::secure_endpoint(). Clients have to show a certificate, unless a
    /// line() says otherwise ("ssl.clientAuth=want").
    /// @param key a file in PEM with the key and the certificate, in this order
    /// @param ca a file in PEM with the certificates that the servers trust
    server_options& tls(std::string key, std::string ca) {
        key_ = std::move(key);
        ca_ = std::move(ca);
        return *this;
    }

    const std::string& java() const noexcept { return java_; }
    const std::string& class_path() const noexcept { return class_path_; }
    std::chrono::milliseconds tick() const noexcept { return tick_; }
    const std::vector<std::string>& lines() const noexcept { return lines_; }
    bool has_partitions() const noexcept { return partitions_; }
    bool reads_without_quorum() const noexcept { return read_without_quorum_; }
    bool has_tls() const noexcept { return !key_.empty(); }
    const std::string& tls_key() const noexcept { return key_; }
    const std::string& tls_ca() const noexcept { return ca_; }

private:
    std::string java_, class_path_, key_, ca_;
    std::chrono::milliseconds tick_{500};
    std::vector<std::string> lines_;
    bool partitions_ = false, read_without_quorum_ = false;
};

}  // namespace zkasio::testing

namespace zkasio::testing_detail {

enum class server_action {
    stop,
    kill,
    start,
    restart,
    pause,
    resume,
};

}  // namespace zkasio::testing_detail

namespace zkasio::testing {

/// Real ZooKeeper servers, to be thrown away: one, or several that form an ensemble. For tests that stop, pause, kill
/// and separate servers.
///
/// The servers listen on 127.0.0.1, .2, ... only, at ports that were free. Their data is in a directory of their own
/// below the temporary directory. The destructor ends the server processes, by their ids, and removes the data. If this
/// process ends without it, for example because it was killed, the kernel ends the servers (with setpriv of
/// util-linux).
///
/// *Two forms.* start(), for example, blocks until its action has happened: for use outside of the event loop.
/// async_start() does the same on a thread of this object, and completes on the executor of its completion token, by
/// default an awaitable: `co_await servers.async_start(1);`. Both forms throw the same
/// exceptions. Actions happen one after another, in the order of the calls.
///
/// *Cancellation* of an async_ form ends the wait at once, with asio::error::operation_aborted, and undoes nothing: a
/// signal that was sent remains sent, and a server that was started starts. The destructor cancels all async_ forms.
///
/// Thread-safe. The number of a server that does not exist causes std::out_of_range.
class ZKASIO_EXPORT ensemble {
public:
    /// Why no server can run on this machine, and what to do: "no Java: ..."; empty if servers can run.
    static std::string impossible(const server_options& options = {});

    /// Starts the servers, and waits until all of them serve.
    /// *Throws* std::runtime_error if impossible() is not empty, and if a server ends or does not serve within a
    /// minute, with the end of its log.
    /// @param count 1, or an odd number up to 9.
    explicit ensemble(int count = 1, server_options options = {});
    ~ensemble();
    ensemble(const ensemble&) = delete;
    ensemble& operator=(const ensemble&) = delete;

    /// The addresses of all servers, for client_options.
    const std::string& connect_string() const noexcept;
    int size() const noexcept;
    std::string address(int server = 0) const;  ///< "127.0.0.1"
    std::uint16_t port(int server = 0) const;
    /// "127.0.0.1:20123", for a proxy.
    std::string endpoint(int server = 0) const { return address(server) + ":" + std::to_string(port(server)); }

    /// "127.0.0.1:20124", where the server speaks TLS: with server_options::tls() only; otherwise port 0.
    std::string secure_endpoint(int server = 0) const;

    // ------------------------------------------------------------------------------------------------- processes
    void stop(int server = 0);  ///< by SIGTERM; std::runtime_error if the process has not ended within a minute
    void kill(int server = 0);  ///< by SIGKILL, at once
    /// Starts a server that was stopped or killed, with the data that it had, and waits until it serves. If too few
    /// other servers run for a quorum, start() returns at once; the start() that completes the quorum waits for all of
    /// them.
    /// *Throws* as the constructor; std::logic_error if the server runs.
    void start(int server = 0);
    void restart(int server = 0);  ///< kill() and start()
    void pause(int server = 0);    ///< stops its process (SIGSTOP): sockets stay open, without an answer
    void resume(int server = 0);   ///< continues its process after pause()

    using default_token = asio::use_awaitable_t<>;
    template <class Token = default_token>
    auto async_stop(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::stop, server, std::forward<Token>(token));
    }
    template <class Token = default_token>
    auto async_kill(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::kill, server, std::forward<Token>(token));
    }
    template <class Token = default_token>
    auto async_start(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::start, server, std::forward<Token>(token));
    }
    template <class Token = default_token>
    auto async_restart(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::restart, server, std::forward<Token>(token));
    }
    template <class Token = default_token>
    auto async_pause(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::pause, server, std::forward<Token>(token));
    }
    template <class Token = default_token>
    auto async_resume(int server = 0, Token&& token = Token()) {
        return act(testing_detail::server_action::resume, server, std::forward<Token>(token));
    }

    // ------------------------------------------------------------------------------------------------ partitions
    // Partitions among the servers; between clients and servers, see network.hpp. These functions require
    // server_options::partitions(); otherwise std::logic_error. The change has happened when they return, and takes no
    // time: there are no async_ forms.

    /// Breaks the connections between servers of `some` and servers of `others`, and prevents new ones until heal():
    /// the servers notice at once. Other connections stay: a server in neither list talks to all servers.
    void partition(const std::vector<int>& some, const std::vector<int>& others);
    void isolate(int server);  ///< cuts this server off from all others
    void heal();               ///< ends all partitions

    // ------------------------------------------------------------------------------------------------- questions
    /// The answer to one of ZooKeeper's four-letter commands: "wchp", "cons", "srvr". Empty: none, after two seconds.
    std::string ask(const std::string& four_letters, int server = 0) const;
    template <class Token = default_token>
    auto async_ask(std::string four_letters, int server = 0, Token&& token = Token()) const;

    /// "leader", "follower", "standalone"; empty while the server does not serve.
    std::string mode(int server = 0) const;
    int leader() const;  ///< the number of the leading server; -1: no leader at the moment
    /// Waits until a server other than `other_than` leads, and returns its number.
    /// *Throws* std::runtime_error after a minute.
    int wait_for_leader(int other_than = -1) const;
    template <class Token = default_token>
    auto async_wait_for_leader(int other_than = -1, Token&& token = Token()) const;

    /// The end of the server's log.
    std::string log(int server = 0) const;

private:
    void begin(testing_detail::server_action what, int server, testing_detail::job_ptr job);
    void begin_ask(std::string four_letters, int server, std::shared_ptr<std::string> answer,
                   testing_detail::job_ptr job) const;
    void begin_wait_for_leader(int other_than, std::shared_ptr<int> found, testing_detail::job_ptr job) const;

    template <class Token>
    auto act(testing_detail::server_action what, int server, Token&& token) {
        return asio::async_initiate<Token, void(std::exception_ptr)>(
            [](auto handler, ensemble* self, testing_detail::server_action w, int n) {
                const auto finish = [](auto& h, std::exception_ptr failed) { std::move(h)(std::move(failed)); };
                self->begin(w, n, testing_detail::make_job(std::move(handler), finish));
            },
            token, this, what, server);
    }

    struct impl;
    std::unique_ptr<impl> impl_;
};

template <class Token>
auto ensemble::async_ask(std::string four_letters, int server, Token&& token) const {
    return asio::async_initiate<Token, void(std::exception_ptr, std::string)>(
        [](auto handler, const ensemble* self, std::string text, int n) {
            const auto answer = std::make_shared<std::string>();
            const auto finish = [answer](auto& h, std::exception_ptr failed) {
                std::string text_of_it = failed ? std::string() : *answer;
                std::move(h)(std::move(failed), std::move(text_of_it));
            };
            self->begin_ask(std::move(text), n, answer, testing_detail::make_job(std::move(handler), finish));
        },
        token, this, std::move(four_letters), server);
}

template <class Token>
auto ensemble::async_wait_for_leader(int other_than, Token&& token) const {
    return asio::async_initiate<Token, void(std::exception_ptr, int)>(
        [](auto handler, const ensemble* self, int except) {
            const auto found = std::make_shared<int>(-1);
            const auto finish = [found](auto& h, std::exception_ptr failed) {
                const int number = failed ? -1 : *found;
                std::move(h)(std::move(failed), number);
            };
            self->begin_wait_for_leader(except, found, testing_detail::make_job(std::move(handler), finish));
        },
        token, this, other_than);
}

/// An ensemble of one server.
class server : public ensemble {
public:
    explicit server(server_options options = {}) : ensemble(1, std::move(options)) {}
};

/// Sends one of ZooKeeper's four-letter commands to `endpoint`, an "address:port", numeric, and returns the answer;
/// empty: no answer. Blocks. Throws zkasio::error (errc::invalid_argument) for any other form of `endpoint`.
ZKASIO_EXPORT std::string four_letter_command(const std::string& endpoint, const std::string& four_letters);

/// A port of this address at which no process listens at the moment, and which the kernel does not give to connections.
ZKASIO_EXPORT std::uint16_t free_port(const std::string& address = "127.0.0.1");

}  // namespace zkasio::testing
