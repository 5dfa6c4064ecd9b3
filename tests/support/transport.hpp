#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/testing/ensemble.hpp>

#include <string>

namespace zkasio::test {

/// How the clients and servers of a test program speak with each other: in the clear, unless the program has an object
/// of another class of these, made before main(). The same tests then go that way: options(), test_server and
/// shared_servers() look here.
class transport {
public:
    virtual ~transport() = default;
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;

    static const transport& current() noexcept;

    virtual bool is_secure() const = 0;
    virtual client_options of_clients(client_options o) const = 0;
    virtual testing::server_options of_servers(testing::server_options o) const = 0;
    /// Where clients find one of them.
    virtual std::string endpoint(const testing::ensemble& servers, int server) const = 0;

protected:
    transport() = default;
    /// Takes the place of the one there is, for as long as the program runs.
    static void use(const transport& t) noexcept;
};

}  // namespace zkasio::test
