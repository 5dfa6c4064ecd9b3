#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/types.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio::testing {

/// What clients have asked of the servers of a fake_ensemble, and what the servers have told them: counts that only
/// rise. The difference of two moments is the cost of what happened between them.
///
/// Requests are counted when a server carries them out. A read that sets a watch is a read; the frame with which a
/// client sets its watches again after a reconnect is one request. Bytes are those of the frames, without TCP and TLS,
/// estimated within some bytes for each frame. Pings do not exist in a fake_ensemble: an idle client reads instead.
struct traffic {
    std::uint64_t connections = 0;  ///< handshakes that a server has answered
    std::uint64_t requests = 0;     ///< all of them, the goodbye of a session included
    std::uint64_t writes = 0;       ///< of these: what the ensemble orders, also transactions that are refused
    std::uint64_t listings = 0;     ///< of these: children()
    std::uint64_t bytes_in = 0;     ///< from clients, of requests
    std::uint64_t bytes_out = 0;    ///< to clients, of answers and events
    std::uint64_t events = 0;       ///< fired watches of which a client was told

    /// Reads of any kind, listings and sync() included.
    std::uint64_t reads() const noexcept { return requests - writes; }

    traffic& operator+=(const traffic& other) noexcept {
        connections += other.connections;
        requests += other.requests;
        writes += other.writes;
        listings += other.listings;
        bytes_in += other.bytes_in;
        bytes_out += other.bytes_out;
        events += other.events;
        return *this;
    }
    /// What has come since `earlier`, a value of the same ensemble.
    traffic since(const traffic& earlier) const noexcept {
        traffic result;
        result.connections = connections - earlier.connections;
        result.requests = requests - earlier.requests;
        result.writes = writes - earlier.writes;
        result.listings = listings - earlier.listings;
        result.bytes_in = bytes_in - earlier.bytes_in;
        result.bytes_out = bytes_out - earlier.bytes_out;
        result.events = events - earlier.events;
        return result;
    }
};

}  // namespace zkasio::testing

namespace zkasio::testing_detail {

template <class T>
asio::awaitable<T> not_empty(asio::awaitable<T> task) {
    if (!task.valid()) throw error(errc::invalid_argument, "fake_ensemble::run", {}, "the task is empty");
    return task;
}

template <class T>
asio::awaitable<void> keep_result(asio::awaitable<T> task, std::shared_ptr<std::optional<T>> result) {
    T value = co_await std::move(task);
    result->emplace(std::move(value));
}

// Keeps the function object of the coroutine until the coroutine ends.
template <class T>
asio::awaitable<T> keep_body(asio::awaitable<T> task, std::shared_ptr<const void>) {
    co_return co_await std::move(task);
}

}  // namespace zkasio::testing_detail

namespace zkasio::testing {

/// A ZooKeeper ensemble in memory, with an event loop and a time of its own: tests of code that uses zkasio run without
/// a server, in milliseconds, and the same way each time.
///
///     fake_ensemble ensemble;
///     const client zk = ensemble.client(client_options("zk1,zk2").session_timeout(10s));
///     ensemble.run([&]() -> asio::awaitable<void> {
///         const mutex orders(zk, "/locks/orders");
///         lock_guard guard = co_await orders.acquire();
///         ensemble.hold_down(zk);
///         co_await guard.lost();  // after some seconds, which take no time
///     });
///
/// *Time* is virtual, for the thread that has made the ensemble, while the ensemble exists: boot_clock, std::chrono's
/// clocks and Asio's timers stand still while something happens. When nothing is left to do at once, time jumps to the
/// next timer or to the servers' next step. So all code under test belongs on context(), on this one thread. Other
/// threads have the real time, and this thread does not wait for them. A function that blocks this thread until a time
/// (std::this_thread, std::condition_variable) does not end as it should. A thread may have one ensemble at a time;
/// several threads may have one each.
///
/// *Steps.* The servers take one step after another, step_time() apart: a step carries out a request, delivers an
/// answer, or tells one server what another server has done. The seed determines the next step, and also the random
/// names and pauses of the clients: the same program with the same seed does the same. Another seed gives another order
/// of all events whose order is not fixed.
///
/// *As in ZooKeeper*: a session expires if its client was not heard of for the session timeout, which
/// session_timeouts() bounds; watches, sequence numbers, transactions and chroots; ACLs of the schemes world, auth,
/// digest and ip; sync() where servers lag; containers and times to live. The integration tests of zkasio run against
/// ZooKeeper and against fake_ensemble. *Not*: reconfiguration and quotas (requests about them fail with
/// zk_errc::unimplemented), and nodes below /zookeeper.
///
/// Not thread-safe. Clients that client() has not made do not use the ensemble: code under test takes its client as an
/// argument.
/// *Lifetime*: longer than that of its clients and of all that runs on context().
class ZKASIO_EXPORT fake_ensemble {
public:
    using duration = std::chrono::nanoseconds;

    /// Throws std::logic_error if this thread has an ensemble already, and std::runtime_error if the program's clocks
    /// cannot be replaced (it is linked statically with the C library).
    explicit fake_ensemble(std::uint64_t seed = 1);
    ~fake_ensemble();
    fake_ensemble(const fake_ensemble&) = delete;
    fake_ensemble& operator=(const fake_ensemble&) = delete;

    // ------------------------------------------------------------------------------------------------ clients
    /// The event loop, for timers and other needs of the code under test.
    asio::io_context& context() noexcept;
    asio::any_io_executor get_executor();

    /// A client of this ensemble, on its loop. Of client_options::servers(), only the chroot is used. An observer
    /// without an executor of its own is called on the loop. Throws as the constructor of `client` does.
    zkasio::client client(client_options options = client_options("127.0.0.1:2181"));
    /// As above, on an executor of context(), such as a strand. Throws errc::invalid_argument for one of another loop.
    zkasio::client client(asio::any_io_executor executor,
                          client_options options = client_options("127.0.0.1:2181"));

    // ------------------------------------------------------------------------------------------------ running
    /// Runs the loop until `task` has ended, and returns its result or throws its exception. Other work on the loop
    /// continues in the next run.
    /// *Throws* std::runtime_error if the task has not ended after `limit` of the ensemble's time, with what the
    /// clients wait for and what has happened last. An exception of other work on context() is passed on. In both
    /// cases, the task has received a terminal cancellation before. std::logic_error if run() is called during a run,
    /// or by another thread. errc::invalid_argument for an empty task.
    template <class T>
    T run(asio::awaitable<T> task, any_duration limit = std::chrono::hours(1)) {
        const auto result = std::make_shared<std::optional<T>>();
        run_task(testing_detail::keep_result(testing_detail::not_empty(std::move(task)), result), limit);
        return std::move(**result);
    }
    void run(asio::awaitable<void> task, any_duration limit = std::chrono::hours(1)) {
        run_task(testing_detail::not_empty(std::move(task)), limit);
    }
    /// As above, for the coroutine `body()`: a lambda with captures may be written in the call.
    template <std::invocable Body>
    auto run(Body&& body, any_duration limit = std::chrono::hours(1)) {
        if constexpr (std::is_lvalue_reference_v<Body>) {
            return run(body(), limit);
        } else {
            const auto kept = std::make_shared<std::remove_const_t<Body>>(std::move(body));
            return run(testing_detail::keep_body(testing_detail::not_empty((*kept)()), kept), limit);
        }
    }
    /// Runs the loop for this much of the ensemble's time.
    void run_for(any_duration time);
    /// Runs the loop until nothing is left to do: no client is open, and no coroutine and no timer waits.
    /// *Throws* std::runtime_error if something is left after `limit`; an exception of a handler is passed on.
    void run_dry(any_duration limit = std::chrono::hours(1));
    /// The ensemble's time since it was made.
    duration now() const noexcept;

    // ------------------------------------------------------------------------------------------- what goes wrong
    /// The connection breaks; the seed determines what is lost of all that is under way. The client reconnects.
    void cut(const zkasio::client& zk);
    /// The connection breaks, and the client gets no new one until let_in(). If let_in() is not called within the
    /// session timeout, the session expires.
    void hold_down(const zkasio::client& zk);
    /// Until let_in(), nothing passes between client and servers, and neither side is told, as when a cable is pulled.
    /// After two thirds of its session timeout the client gives the connection up; from then on as hold_down().
    void silence(const zkasio::client& zk);
    void let_in(const zkasio::client& zk);
    /// The connection breaks. Until let_in(), a server answers each handshake of this client, and hangs up before any
    /// other answer. As with max_request(), and unlike after cut(), the client pauses before it connects again. Each
    /// handshake renews the session, so that it lives for as long as the client goes on connecting in time.
    void hang_up(const zkasio::client& zk);
    /// As hold_down(), but one server is left to the client: one that is cut off from the quorum, stays as it is at
    /// this moment, and only reads. A client with client_options::read_only() reads there, a few seconds later.
    /// The other servers go on with the other clients, and end the session after its timeout unless let_in() is called.
    void lose_quorum(const zkasio::client& zk);
    /// The servers end the client's session now. The client reconnects at once, and then learns of the end.
    void expire(const zkasio::client& zk);
    /// The next request of this client that begins with `request` ("create /a/b", "set ", "multi") is carried out, and
    /// the connection breaks before the answer. Each call affects one more request.
    void lose_answer(const zkasio::client& zk, std::string request);
    /// Until accept() of the same path, requests about this node and nodes below it fail with `why`; "/": all requests.
    /// If several refusals apply to a node, the one of the nearest path is used. With zk_errc::no_auth, refuse() and
    /// accept() each act as a change of the ACLs of these nodes: node_stat::aversion tells.
    void refuse(std::string path, std::error_code why);
    void accept(const std::string& path);
    /// The event loop stands still for so long, as that of a process that is stopped or whose machine is paused: time
    /// passes, the servers carry out what has arrived, sessions that they do not hear of expire, and no handler and no
    /// timer runs. Call stall() in the middle of code under test to see what the code does with a lock that it has lost
    /// without having been told. All clients of the ensemble stand still, since they share the loop.
    void stall(any_duration time);
    /// Servers answer this percentage of all requests with zk_errc::throttled. throttle() and lose_connections() throw
    /// errc::invalid_argument if `percent` is no percentage.
    void throttle(int percent);
    /// Before each step, the connection that the step is about breaks with this probability, in percent.
    void lose_connections(int percent);
    /// While `on`, each client's server learns late of the writes of other clients, as the seed determines: reads may
    /// be stale, as with a real ensemble.
    void lag(bool on = true);
    /// The time between two steps of the servers (100 us). With several seconds, time limits and leases end under way.
    void step_time(any_duration d);
    /// znode.container.checkIntervalMs (a minute): how often the servers remove empty containers, and nodes without
    /// children whose time to live has passed since they were written.
    void check_containers_every(any_duration d);
    /// minSessionTimeout and maxSessionTimeout (4 s and 40 s, the servers' defaults): the bounds of session timeouts
    /// that are granted, from the next connection on. Throws errc::invalid_argument unless 0 < least <= most.
    void session_timeouts(any_duration least, any_duration most);
    /// jute.maxbuffer (1048575): a larger request ends the connection, and is not carried out.
    void max_request(std::size_t bytes);
    /// Servers without containers (before 3.5, and some that only speak the protocol) do not know the request that
    /// creates one: it ends the connection.
    void know_containers(bool yes);
    /// Servers before 3.6 do not know operations::multi_read() and its neighbours: they answer with
    /// zk_errc::unimplemented, and hang up.
    void know_multi_read(bool yes);
    /// Servers before 3.5, and ClickHouse Keeper before 25.12, do not know the create that answers with a stat: as with
    /// know_multi_read(). The client then sends another one, which counts once here.
    void know_create2(bool yes);
    /// Servers before 3.5, and ClickHouse Keeper before 25.12, do not know the removal of a watch: as with
    /// know_multi_read().
    void know_watch_removal(bool yes);
    /// False: the servers are not ZooKeeper's own, see client_options::try_all_requests(), and hang up at such requests
    /// without an answer. Sessions outlive connections nevertheless.
    void are_zookeepers(bool yes);
    /// Servers up to 3.8 have one watch of a client at a path (ZOOKEEPER-4466): an added watch and the watch of a read
    /// replace each other. By default they stand beside each other, as from 3.9 on.
    void watches_replace_each_other(bool yes);

    // -------------------------------------------------------------------------------------------------- nodes
    // The nodes as the leader has them. Changes made here happen at once, without a client. Paths are whole, with the
    // chroot that a client may have. create(), set() and remove() throw zkasio::error.
    bool exists(const std::string& path) const;
    std::optional<std::string> data(const std::string& path) const;  ///< std::nullopt: there is no such node
    std::optional<node_stat> stat(const std::string& path) const;
    std::vector<std::string> children(const std::string& path) const;  ///< sorted names; empty: no children, or no node
    std::vector<std::string> paths() const;                            ///< of all nodes but "/", sorted
    /// Whether the node is ephemeral, and owned by this client's session.
    bool owns(const zkasio::client& zk, const std::string& path) const;
    void create(const std::string& path, std::string data = {});  ///< persistent; creates missing parents, too
    void set(const std::string& path, std::string data);
    void remove(const std::string& path);

    // -------------------------------------------------------------------------------------- what is left behind
    std::size_t watches() const;  ///< held by the servers, for all clients
    std::size_t watches(const zkasio::client& zk) const;
    std::vector<std::string> watched_paths() const;  ///< sorted, each once
    /// What the servers have been asked, and what they have answered: by this client in all its sessions, or by all.
    testing::traffic traffic(const zkasio::client& zk) const;
    testing::traffic traffic() const;
    std::size_t requests(const zkasio::client& zk) const;  ///< of traffic(): heartbeats of the session are among them
    std::size_t ephemerals() const;                        ///< nodes of live sessions, of all clients
    std::size_t sessions() const;     ///< live ones
    std::size_t connections() const;  ///< of clients that were not closed, whether established or attempted
    std::int64_t session_id(const zkasio::client& zk) const;  ///< of the client's newest session; 0: none yet
    bool is_connected(const zkasio::client& zk) const;        ///< as its server sees it

    /// `log` is called before each step of the servers, with its text: "0.0021 s apply 0: create /a". `log` may cut(),
    /// hold_down() or expire(); a step that is no longer possible then does not happen. Null: no call.
    void on_step(std::function<void(std::string_view)> log);

private:
    void run_task(asio::awaitable<void> task, duration limit);
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace zkasio::testing
