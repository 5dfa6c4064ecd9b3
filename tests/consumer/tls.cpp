// What an installed zkasio's component tls is good for. docs/tls.md shows a part of it.
#include <zkasio/client.hpp>
#include <zkasio/error.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/io_context.hpp>

#include <string>

namespace {

// [tls]
zkasio::client_options through_tls(std::string servers) {  // "zk1:2281,zk2:2281"
    const auto files = zkasio::tls_files()
                           .ca("/etc/zkasio/ca.pem")                                  // who has signed the servers'
                           .certificate("/etc/zkasio/me.pem", "/etc/zkasio/me.key");  // who we are
    return zkasio::client_options(servers).tls(files);  // throws when the files cannot be used
}
// [/tls]

bool says_that_there_are_no_files() {
    try {
        through_tls("localhost:1");
        return false;
    } catch (const zkasio::error& e) {
        return e.code() == zkasio::errc::invalid_argument;
    }
}

}  // namespace

int main() {
    asio::io_context io;
    const zkasio::client_options o = zkasio::client_options("localhost:1").tls(zkasio::tls_files());
    const zkasio::client zk(io, o);
    return zk.options().security() && says_that_there_are_no_files() ? 0 : 1;
}
