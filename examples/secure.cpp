// Through TLS, with certificates of both sides: secure zk1:2281 ca.pem me.pem me.key
#include "expect.hpp"

#include <zkasio/client.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <exception>
#include <iostream>
#include <string>

// [secure]
// A certificate of who has signed the servers', and this client's own. All three files may be replaced at any time.
zkasio::client_options secured(std::string servers, std::string ca, std::string certificate, std::string key) {
    const zkasio::tls_files files = zkasio::tls_files().ca(ca).certificate(certificate, key);
    return zkasio::client_options(servers).tls(files);
}

// Only for who has shown a certificate for this name: the ACL scheme "x509" takes it from the connection.
asio::awaitable<void> keep_for(zkasio::client zk, std::string name, std::string path, std::string secret) {
    zkasio::create_options only;
    only.acl(zkasio::acl{zkasio::acl_entry(zkasio::permission::all, zkasio::acl_id("x509", "CN=" + name))});
    co_await zk.create(path, secret, only);
}
// [/secure]

asio::awaitable<void> example(zkasio::client zk) {
    co_await zk.remove_recursive("/secure-example");
    co_await keep_for(zk, "client", "/secure-example", "nobody else's");
    const zkasio::node_data read = co_await zk.get("/secure-example");
    expect(read.data == "nobody else's", "the node is ours");
    co_await zk.remove("/secure-example");
    co_await zk.close();
}

int main(int argc, char** argv) {
    if (argc != 5) return std::cerr << "usage: secure SERVERS CA CERTIFICATE KEY\n", 2;
    try {
        asio::io_context io;
        asio::co_spawn(io, example({io, secured(argv[1], argv[2], argv[3], argv[4])}), rethrow);
        io.run();
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    return 0;
}
