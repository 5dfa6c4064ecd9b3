#pragma once

#include <restinio/connection_state_listener.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/strand.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace order_server {

/// A request whose coroutine runs. May be used on any thread.
class open_request : public std::enable_shared_from_this<open_request> {
public:
    using strand = asio::strand<asio::any_io_executor>;

    open_request(std::uint64_t n, restinio::connection_id_t connection, asio::any_io_executor executor)
        : number(n), from(connection), on(std::move(executor)) {}

    /// Starts the coroutine, on the strand; `ended` is called when it has ended.
    void start(asio::awaitable<void> answer, std::function<void()> ended);
    /// Cancels the coroutine: a wait for a lock ends, and the place in the queue is given up.
    void cancel();

    const std::uint64_t number;  ///< counted by this process
    const restinio::connection_id_t from;
    const strand on;

private:
    // Of the strand only.
    asio::cancellation_signal signal_;
    bool cancelled_ = false;
};

/// The connections, and the requests of each that are being answered. RESTinio tells it when a connection is closed:
/// whoever has asked is gone, and so their requests are cancelled. (It notices while it reads. So the server lets
/// RESTinio read on while a request is answered, by max_pipelined_requests(2); a client that pipelines more than that
/// is noticed later.)
class open_requests {
public:
    explicit open_requests(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    std::shared_ptr<open_request> begin(restinio::connection_id_t connection);
    void end(const open_request& r);

    /// False: there is none of this number.
    bool cancel(std::uint64_t number);
    void cancel_all();
    std::size_t size() const;
    /// How many connections are open.
    std::size_t connections() const;
    /// Calls `f` when there is none any more, at once if there is none.
    void when_empty(std::function<void()> f);

    /// RESTinio calls it on the connection's strand.
    void state_changed(const restinio::connection_state::notice_t& notice) noexcept;

private:
    const asio::any_io_executor executor_;
    mutable std::mutex mutex_;  // held for a look at a map
    std::uint64_t last_ = 0;
    std::function<void()> when_empty_;
    std::map<std::uint64_t, std::shared_ptr<open_request>> by_number_;
    std::unordered_set<restinio::connection_id_t> connections_;
    std::unordered_multimap<restinio::connection_id_t, std::shared_ptr<open_request>> by_connection_;
};

}  // namespace order_server
