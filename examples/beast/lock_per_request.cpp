// An HTTP server on Boost.Beast that takes a lock for each request: lock_per_request 127.0.0.1:2181 8080 [SECONDS]
//
//     curl -X POST http://127.0.0.1:8080/printers/first     works under the lock of that printer, for SECONDS (1)
//     curl http://127.0.0.1:8080/printers/first             how many requests have that lock or wait for it
//
// Requests for one printer are served one after another, whichever instance of the server has received them. A request
// whose client hangs up is cancelled: it leaves the queue of the lock. 503: the lock was not there within a minute, or
// there is no ZooKeeper; 500: the lock was lost during the work.
#include <boost_zkasio/client.hpp>
#include <boost_zkasio/coroutines/result.hpp>
#include <boost_zkasio/error.hpp>
#include <boost_zkasio/locks/mutex.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/lexical_cast.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// [names]
namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace zkasio = boost_zkasio;
using asio::ip::tcp;
// [/names]

namespace {

using text_request = http::request<http::string_body>;
using text_response = http::response<http::string_body>;

text_response respond(http::status status, std::string text) {
    text_response answer(status, 11);
    answer.set(http::field::content_type, "text/plain");
    answer.keep_alive(false);
    answer.body() = std::move(text) + "\n";
    answer.prepare_payload();
    return answer;
}

// [work]
asio::awaitable<std::string> work(zkasio::mutex printer, std::chrono::seconds time) {
    auto print = [&](zkasio::lock_guard& guard) -> asio::awaitable<std::string> {
        asio::steady_timer printing(co_await asio::this_coro::executor, time);
        co_await printing.async_wait(asio::use_awaitable);  // throws when the lock is lost
        co_return "printed under token " + std::to_string(guard.token().value());
    };
    zkasio::with_lock_options how;
    how.time_limit(std::chrono::minutes(1));  // to wait for the lock
    co_return co_await printer.with_lock(print, how);
}

// Completes when the client has closed its connection.
asio::awaitable<void> hung_up(tcp::socket& client) {
    boost::system::error_code closed;
    while (!closed) {
        co_await client.async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, closed));
        char next = 0;
        if (!closed) client.receive(asio::buffer(&next, 1), tcp::socket::message_peek, closed);
        if (!closed) {  // the client has sent more, which nobody reads: it cannot be watched any longer
            asio::steady_timer never(client.get_executor(), asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        }
    }
}

asio::awaitable<text_response> work_unless_hung_up(zkasio::mutex printer, std::chrono::seconds time,
                                                   tcp::socket& client) {
    using namespace asio::experimental::awaitable_operators;
    // `||` waits for the first that succeeds: with as_result(), work that has failed is one of these.
    auto first = co_await (zkasio::as_result(work(printer, time)) || hung_up(client));
    if (first.index() == 1) co_return respond(http::status::gone, "cancelled");
    co_return respond(http::status::ok, std::get<0>(first).value());  // throws what work() has thrown
}
// [/work]

// Empty: the target names no printer.
std::string printer_of(std::string_view target) {
    constexpr std::string_view prefix = "/printers/";
    if (!target.starts_with(prefix)) return {};
    target.remove_prefix(prefix.size());
    const bool good = std::all_of(target.begin(), target.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    return good ? std::string(target) : std::string();
}

struct server {
    zkasio::client zk;
    std::chrono::seconds time;  // of the work
};

asio::awaitable<text_response> answer(server here, const text_request& request, tcp::socket& client) {
    const std::string name = printer_of(request.target());
    if (name.empty()) co_return respond(http::status::not_found, "/printers/NAME, of a-z, 0-9 and -");
    const zkasio::mutex printer(here.zk, "/printers/" + name);
    std::string failure;
    http::status status = http::status::service_unavailable;
    try {
        if (request.method() == http::verb::get) {
            const std::vector<zkasio::contender_info> there = co_await printer.contenders();
            co_return respond(http::status::ok, std::to_string(there.size()));
        }
        if (request.method() == http::verb::post) {
            text_response done = co_await work_unless_hung_up(printer, here.time, client);
            co_return done;
        }
    } catch (const zkasio::error& e) {
        failure = e.what();
        if (e.code() == zkasio::errc::lock_lost) status = http::status::internal_server_error;
    }
    if (!failure.empty()) co_return respond(status, failure);
    co_return respond(http::status::method_not_allowed, "GET and POST");
}

asio::awaitable<void> serve(server here, tcp::socket client) {
    boost::beast::flat_buffer buffer;
    text_request request;
    co_await http::async_read(client, buffer, request, asio::use_awaitable);
    text_response done = co_await answer(here, request, client);
    co_await http::async_write(client, done, asio::use_awaitable);
    client.shutdown(tcp::socket::shutdown_both);
}

asio::awaitable<void> listen(server here, tcp::acceptor& acceptor) {
    // What a connection has failed with is its client's business.
    const auto ended = [](const std::exception_ptr&) {};
    for (;;) {
        tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), serve(here, std::move(client)), ended);
    }
}

asio::awaitable<void> run(server here, tcp::acceptor& acceptor) {
    using namespace asio::experimental::awaitable_operators;
    asio::signal_set stop(acceptor.get_executor(), SIGINT, SIGTERM);
    co_await (listen(here, acceptor) || stop.async_wait(asio::use_awaitable));
    co_await here.zk.close();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        std::cerr << "usage: lock_per_request HOST:PORT[,HOST:PORT...] PORT [SECONDS]\n";
        return 2;
    }
    try {
        asio::io_context io;
        const server here{zkasio::client(io, argv[1]), std::chrono::seconds(argc == 4 ? std::stoi(argv[3]) : 1)};
        tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"),
                                    boost::lexical_cast<std::uint16_t>(argv[2])});
        std::cout << "listening on http://127.0.0.1:" << acceptor.local_endpoint().port() << std::endl;
        std::exception_ptr failed;
        asio::co_spawn(io, run(here, acceptor), [&](std::exception_ptr e) {
            failed = e;
            io.stop();
        });
        io.run();
        if (failed) std::rethrow_exception(failed);
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << '\n';
        return 1;
    }
    return 0;
}
