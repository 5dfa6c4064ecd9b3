#pragma once

#include <zkasio/detail/client/core.hpp>
#include <zkasio/detail/seam/backend.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zkasio::test {

/// Leases are kept by transactions; nothing else in these tests is one.
inline bool is_heartbeat(const detail::request& r) { return std::holds_alternative<detail::multi_request>(r); }

/// The other side of the seam, played by the test: a detail::backend that connects to nothing.
///
/// By default it accepts every connection and answers every request with success. What the test wants to happen
/// (`drop()`, `expire()`, `fire()` ...) happens in the next turn of the core's strand, from inside process(), as with
/// the C library: replies first, then the news about the link. For one thread only.
class fake_server {
public:
    using answer_function = std::function<std::optional<detail::reply>(const detail::request&)>;
    struct received {
        detail::op_id id;
        detail::request what;
        boot_clock::time_point at;
        std::string text;  ///< "get /a"
    };

    fake_server();
    ~fake_server();
    fake_server(const fake_server&) = delete;
    fake_server& operator=(const fake_server&) = delete;

    /// What a core is built with.
    detail::backend_factory factory();

    // ----------------------------------------------------------------------------------------------- the script
    answer_function answer = [](const detail::request&) {
        return detail::reply{};
    };                                                              ///< nothing: not now, see reply_to()
    std::function<std::error_code(const detail::request&)> refuse;  ///< at once, as submit() may
    int failing_opens = 0;                                          ///< how many times open() throws
    bool reachable = true;                                          ///< else connect() fails
    bool send_fails = false;   ///< the next submit() loses the connection, and only end_batch() tells
    bool times_out = false;    ///< the next next_interest() finds that nothing has come for too long
    std::chrono::milliseconds handshake{0};  ///< how long it takes
    bool silent = false;       ///< connections are accepted, and then nothing happens
    bool wants_write = false;  ///< something is half sent: submit() may refuse until the socket is writable
    bool nodes_are_ours = true;  ///< a stat without an owner names this session
    bool says_goodbye = true;  ///< answers the end of the session
    bool can_send_goodbye = true;
    std::chrono::milliseconds session_timeout{10'000};
    bool answers_own_reads = true;
    bool knows_added_watches = false;  // otherwise refuses them, as a server before 3.6
    std::error_code own_reads_give;  ///< and others that see whether the root exists
    std::chrono::milliseconds delay{0};  ///< of each answer, in steps of `tick`
    boot_clock::time_point quiet_until{};  ///< nothing arrives before
    std::chrono::milliseconds tick{5};  ///< how often the backend wants to be looked at while nothing happens

    // ------------------------------------------------------------------------------------------ what it has seen
    std::vector<received> requests;                      ///< of all connections
    /// "open", "begin", "get /a", "end", "goodbye", "close" ...; "set_watches": the library sets those again that it was
    /// not made to forget.
    std::vector<std::string> log;
    std::vector<detail::open_params> opened;             ///< one for each backend
    std::vector<std::vector<detail::server_address>> server_lists;  ///< of set_servers()
    std::size_t own_reads = 0;  ///< of the core's, see hold_keeper::read_when_idle(): in no other list
    std::size_t turns = 0;                               ///< calls of process()
    std::size_t connections = 0;                         ///< established
    std::size_t backends_alive = 0;

    std::vector<std::string> texts() const;  ///< of the requests
    std::size_t count(const std::string& text) const;
    bool watched(const std::string& path, detail::watch_kind kind = detail::watch_kind::data) const {
        return watches_.contains({path, kind});
    }

    /// *Completes when* `condition()` holds; it is looked at whenever something has happened here.
    template <class Condition>
    asio::awaitable<void> until(Condition condition) {
        while (!condition()) co_await something_happens();
    }

    // ------------------------------------------------------------------------------------------ what it does
    void reply_to(detail::op_id id, detail::reply r = {});
    void reply_to_all(std::error_code code = {});       ///< to what is outstanding
    void drop(std::string why = "connection reset");    ///< the connection is lost, with all that is outstanding
    void expire();                                      ///< the server says that the session has expired
    void refuse_auth();                                 ///< the server refuses a credential
    void fire(detail::node_event e, std::string path);  ///< if somebody watches
    /// One event in each process(), which says that there is more.
    void one_at_a_time() { one_at_a_time_ = true; }

private:
    class connection;
    friend class connection;
    using event = std::function<void(connection&)>;

    asio::awaitable<void> something_happens();
    void happened();
    void post(event e);

    std::list<std::shared_ptr<asio::steady_timer>> waiting_;
    std::set<std::pair<std::string, detail::watch_kind>> watches_;
    connection* current_ = nullptr;
    std::int64_t next_session_ = 0x1001;
    bool one_at_a_time_ = false;
};

/// Where these servers are, sorted: a client tries them in random order.
inline std::vector<std::string> endpoints(const std::vector<detail::server_address>& servers) {
    std::vector<std::string> all;
    for (const detail::server_address& s : servers) all.push_back(endpoint_of(s));
    std::sort(all.begin(), all.end());
    return all;
}

/// The answer "this has failed", given by a server (`sent` is false: it is known what has happened).
inline detail::reply refusal(std::error_code code) {
    detail::reply r;
    r.code = code;
    return r;
}

/// The answer that the library gives when the connection is lost.
inline detail::reply lost(std::error_code code = zk_errc::connection_loss) {
    detail::reply r;
    r.code = code;
    r.sent = true;
    return r;
}

}  // namespace zkasio::test
