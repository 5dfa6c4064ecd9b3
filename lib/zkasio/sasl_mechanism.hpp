#pragma once

#include <zkasio/asio_version.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// The server of one connection, for a mechanism that has to know with whom it speaks.
class sasl_server {
public:
    sasl_server(std::string host, std::string address, std::uint16_t port)
        : host_(std::move(host)), address_(std::move(address)), port_(port) {}
    const std::string& host() const noexcept { return host_; }        ///< the name or address, as the user gave it
    const std::string& address() const noexcept { return address_; }  ///< numeric, without brackets
    std::uint16_t port() const noexcept { return port_; }

private:
    std::string host_, address_;
    std::uint16_t port_;
};

/// What a mechanism does in answer to a challenge.
class sasl_step {
public:
    /// No step: the login fails.
    sasl_step() = default;
    /// The token is sent (an empty one, too), and the server's answer is the next challenge.
    static sasl_step send(std::string token) { return {std::move(token), false}; }
    /// The token is sent, and is the last one: a server that agrees answers without a token, and the login is over.
    static sasl_step send_last(std::string token) { return {std::move(token), true}; }
    /// The login is over: the mechanism is satisfied with what the server has sent.
    static sasl_step done() { return {std::nullopt, true}; }

    const std::optional<std::string>& token() const noexcept { return token_; }
    bool is_last() const noexcept { return is_last_; }

private:
    sasl_step(std::optional<std::string> token, bool is_last) : token_(std::move(token)), is_last_(is_last) {}
    std::optional<std::string> token_;
    bool is_last_ = false;
};

/// The login of one connection, one step after another: at most 20 tokens, of at most 128 KiB in either direction.
///
/// *Lifetime*: destroyed when its connection ends, on the client's thread and perhaps in the middle of a turn of the
/// client, or, if a step is under way then, where that step ends; in a forked child process as well. So its destructor
/// must not throw, wait, or use the client.
class sasl_conversation {
public:
    virtual ~sasl_conversation() = default;

    /// An exception ends the attempt to connect: its text is told as the reason, and logged, so it must contain no
    /// secret.
    ///
    /// *Cancellation*: all steps and round trips of a login together have a third of the session timeout, but at least
    /// 200 ms, from the moment at which a server has accepted the connection; if no server answers in time, up to two
    /// thirds; and behind the first step never more than half of the timeout that the server has granted. A step that
    /// takes longer, or whose client is closed, is cancelled, and its result is not used. The client does not wait for
    /// its end; but the next connection's first step does not begin before. So a step that blocks its thread for long
    /// occupies one thread for each client.
    /// @param challenge empty in the first step, which takes place before anything is sent to ZooKeeper, and when the
    /// server has sent none.
    virtual asio::awaitable<sasl_step> step(std::string challenge) = 0;
};

/// How a client authenticates itself on each of its connections, see client_options::sasl(). Made by components of
/// zkasio, see docs/sasl.md, or by you.
///
/// Several clients, and several threads, may call a mechanism concurrently.
///
/// *Lifetime*: clients, and steps that are under way, share the mechanism: the last of them destroys it, on its thread.
/// The context of its executor has to exist until the clients are closed, or destroyed together with their event loop.
class sasl_mechanism {
public:
    virtual ~sasl_mechanism() = default;

    /// Where begin() and all steps run. Called by the client, for each step: a step has another strand than the one
    /// before, so a conversation must not keep an executor for the next. Empty: on the client's own strand. Then the
    /// client does nothing else while a step computes, and a step must not wait for an operation of the same client,
    /// which itself waits for the login.
    virtual asio::any_io_executor executor() const { return {}; }

    /// For each connection, before its first step. Exceptions are treated as those of a step.
    virtual std::unique_ptr<sasl_conversation> begin(const sasl_server& with) const = 0;
};

}  // namespace zkasio
