#pragma once

#include <zkasio/export.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::testing {

/// How servers are started, where Debian's packages (zookeeper, default-jre-headless) are not what is wanted. Every
/// setter returns the object.
class server_options {
public:
    /// The program: by default $JAVA_HOME/bin/java, or `java` from $PATH.
    server_options& java(std::string program) { java_ = std::move(program); return *this; }
    /// Where ZooKeeper's classes are, with those that they need: by default $ZKASIO_ZOOKEEPER_CLASSPATH, or
    /// /usr/share/java/zookeeper.jar.
    server_options& class_path(std::string path) { class_path_ = std::move(path); return *this; }
    /// tickTime (500 ms): sessions last for two ticks at least, and for twenty at most.
    server_options& tick(std::chrono::milliseconds t) { tick_ = t; return *this; }
    /// One more line of zoo.cfg, "minSessionTimeout=100". May be called more than once.
    server_options& line(std::string of_the_configuration) {
        lines_.push_back(std::move(of_the_configuration));
        return *this;
    }

    /// They speak TLS as well, at ensemble::secure_endpoint(). Clients have to show a certificate, unless a line() says
    /// otherwise ("ssl.clientAuth=want").
    /// @param key a file in PEM with the key and the certificate, in this order
    /// @param ca a file in PEM with the certificates of those whom the servers trust
    server_options& tls(std::string key, std::string ca) {
        key_ = std::move(key);
        ca_ = std::move(ca);
        return *this;
    }

    const std::string& java() const noexcept { return java_; }
    const std::string& class_path() const noexcept { return class_path_; }
    std::chrono::milliseconds tick() const noexcept { return tick_; }
    const std::vector<std::string>& lines() const noexcept { return lines_; }
    bool has_tls() const noexcept { return !key_.empty(); }
    const std::string& tls_key() const noexcept { return key_; }
    const std::string& tls_ca() const noexcept { return ca_; }

private:
    std::string java_, class_path_, key_, ca_;
    std::chrono::milliseconds tick_{500};
    std::vector<std::string> lines_;
};

/// Real ZooKeeper servers that are thrown away: one, or several that form an ensemble. For tests that stop, pause and
/// kill servers.
///
/// They listen on 127.0.0.1, .2, ... only, at ports that were free, and have their data in a directory of their own
/// below the temporary one. The end of this object ends their processes, by their ids, and removes the data; when the
/// thread that has made it ends without that, because its process was killed, say, the kernel ends them (with setpriv
/// of util-linux).
///
/// All members block, until what they ask for has happened: for use outside of the event loop. Not thread-safe.
/// A number of a server that does not exist is a std::out_of_range.
class ZKASIO_EXPORT ensemble {
public:
    /// Why there can be none on this machine, and what to do: "no Java: ..."; empty when there can.
    static std::string impossible(const server_options& options = {});

    /// Starts them, and waits until they serve.
    /// *Throws* std::runtime_error when it is impossible(), and when a server ends or does not serve within a minute,
    /// with the end of its log.
    /// @param count 1, or an odd number up to 9.
    explicit ensemble(int count = 1, server_options options = {});
    ~ensemble();
    ensemble(const ensemble&) = delete;
    ensemble& operator=(const ensemble&) = delete;

    /// For client_options: all of them.
    const std::string& connect_string() const noexcept;
    int size() const noexcept;
    std::string address(int server = 0) const;  ///< "127.0.0.1"
    std::uint16_t port(int server = 0) const;
    /// "127.0.0.1:40123", for a proxy.
    std::string endpoint(int server = 0) const { return address(server) + ":" + std::to_string(port(server)); }

    /// "127.0.0.1:40124", where it speaks TLS: with server_options::tls() only; otherwise port 0.
    std::string secure_endpoint(int server = 0) const;

    void stop(int server = 0);     ///< in order (SIGTERM)
    void kill(int server = 0);     ///< at once (SIGKILL)
    void start(int server = 0);    ///< one that was stopped or killed, with the data that it had; until it serves
    void restart(int server = 0);  ///< kill() and start()
    void pause(int server = 0);    ///< its process does nothing (SIGSTOP): sockets stay open, and nobody answers
    void resume(int server = 0);   ///< goes on after pause()

    /// The answer to one of ZooKeeper's four-letter commands: "wchp", "cons", "srvr". Empty: none.
    std::string ask(const std::string& four_letters, int server = 0) const;
    /// "leader", "follower", "standalone"; empty while it does not serve.
    std::string mode(int server = 0) const;
    int leader() const;  ///< -1: none at the moment
    /// What the server has logged last.
    std::string log(int server = 0) const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// One server.
class server : public ensemble {
public:
    explicit server(server_options options = {}) : ensemble(1, std::move(options)) {}
};

/// The answer to one of ZooKeeper's four-letter commands at "address:port", blocking. Empty: none.
ZKASIO_EXPORT std::string four_letter_command(const std::string& endpoint, const std::string& four_letters);

/// A port of this address that nobody listens on at the moment.
ZKASIO_EXPORT std::uint16_t free_port(const std::string& address = "127.0.0.1");

}  // namespace zkasio::testing
