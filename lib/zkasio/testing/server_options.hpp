#pragma once

#include <zkasio/clock.hpp>

#include <chrono>
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
