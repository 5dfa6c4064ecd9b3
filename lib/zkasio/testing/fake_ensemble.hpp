#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
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

namespace zkasio::testing_detail {

template <class T>
asio::awaitable<void> keep_result(asio::awaitable<T> task, std::shared_ptr<std::optional<T>> result) {
    T value = co_await std::move(task);
    result->emplace(std::move(value));
}

// What the coroutine belongs to lives as long as that.
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
/// *Time* is virtual, for the thread that has made the ensemble, while that exists: boot_clock, std::chrono's clocks
/// and Asio's timers stand still while something happens, and when nothing is left to do at once, it is the time of the
/// next timer or of the servers' next step. So everything belongs on context(), on this one thread. Other threads have
/// the real time, and this one does not wait for them; what blocks this thread until a time (std::this_thread,
/// std::condition_variable) does not end as it should. A thread may have one ensemble at a time; several threads may
/// have one each.
///
/// *What the servers do* they do one step after another, each step_time() later: carry out a request, deliver an
/// answer, or tell one server what another one has done. Which step is next is drawn from the seed, and so are the
/// random names and pauses of the clients: the same program with the same seed does the same. Another seed is another
/// order of everything that is not ordered.
///
/// *As ZooKeeper*: sessions expire when nothing was heard of their clients for the session timeout, which
/// session_timeouts() bounds; watches, sequence numbers, transactions and chroots; ACLs of the schemes world, auth,
/// digest and ip; a sync() where servers lag; containers and times to live. The integration tests of zkasio run against
/// both. *Not*: reconfiguration and quotas (requests about them fail with zk_errc::unimplemented), and nodes below
/// /zookeeper.
///
/// Not thread-safe. *Lifetime*: longer than its clients and whatever runs on context(). Clients of other constructors
/// do not know of it: code under test takes its client as an argument.
class ZKASIO_EXPORT fake_ensemble {
public:
    using duration = std::chrono::nanoseconds;

    /// Throws std::logic_error if this thread has an ensemble, and std::runtime_error if the program's clocks cannot be
    /// replaced (it is linked statically with the C library).
    explicit fake_ensemble(std::uint64_t seed = 1);
    ~fake_ensemble();
    fake_ensemble(const fake_ensemble&) = delete;
    fake_ensemble& operator=(const fake_ensemble&) = delete;

    // ------------------------------------------------------------------------------------------------ clients
    /// The loop, for timers and whatever else the code under test needs one for.
    asio::io_context& context() noexcept;
    asio::any_io_executor get_executor();

    /// A client of this ensemble, on its loop. Of the servers' names only the chroot counts. An observer without an
    /// executor of its own is called on the loop. Throws as the constructor of `client` does.
    zkasio::client client(client_options options = client_options("127.0.0.1:2181"));
    /// The same on this executor of context(): a strand, say. Throws errc::invalid_argument for one of another loop.
    zkasio::client client(asio::any_io_executor executor,
                          client_options options = client_options("127.0.0.1:2181"));

    // ------------------------------------------------------------------------------------------------ running
    /// Runs the loop until `task` has ended, and returns what it returns, or throws what it throws. What else is going
    /// on goes on in the next run.
    /// *Throws* std::runtime_error when it has not ended after `limit` of the ensemble's time, with what the clients
    /// wait for and what has happened last. What another one throws that runs on context(). The task has received a
    /// terminal cancellation by then. std::logic_error when it is called by something that runs, or by another thread.
    template <class T>
    T run(asio::awaitable<T> task, duration limit = std::chrono::hours(1)) {
        const auto result = std::make_shared<std::optional<T>>();
        run_task(testing_detail::keep_result(std::move(task), result), limit);
        return std::move(**result);
    }
    void run(asio::awaitable<void> task, duration limit = std::chrono::hours(1)) { run_task(std::move(task), limit); }
    /// The same with `body()`, a coroutine: a lambda with captures may be written here.
    template <std::invocable Body>
    auto run(Body&& body, duration limit = std::chrono::hours(1)) {
        if constexpr (std::is_lvalue_reference_v<Body>) {
            return run(body(), limit);
        } else {
            const auto kept = std::make_shared<std::remove_const_t<Body>>(std::move(body));
            return run(testing_detail::keep_body((*kept)(), kept), limit);
        }
    }
    /// Runs the loop for this much of the ensemble's time.
    void run_for(duration time);
    /// Runs the loop until nothing is left to do: no client is open, and no coroutine and no timer waits.
    /// *Throws* std::runtime_error when something is left after `limit`, and what a handler throws.
    void run_dry(duration limit = std::chrono::hours(1));
    /// Since the ensemble was made.
    duration now() const noexcept;

    // ------------------------------------------------------------------------------------------- what goes wrong
    /// The connection breaks; some of what is under way is lost, as the seed will have it. The client connects again by
    /// itself.
    void cut(const zkasio::client& zk);
    /// The connection breaks, and there is no other one until let_in(). When that is not within the session timeout,
    /// the session expires.
    void hold_down(const zkasio::client& zk);
    /// Nothing passes any more between client and servers, and neither is told, as when a cable is pulled: the client
    /// gives the connection up after two thirds of its session timeout, and then it is as with hold_down(). Until
    /// let_in().
    void silence(const zkasio::client& zk);
    void let_in(const zkasio::client& zk);
    /// The servers end the client's session now. It learns of that when it connects again, which it does at once.
    void expire(const zkasio::client& zk);
    /// The next request of this client that begins so ("create /a/b", "set ", "multi") is carried out, and the
    /// connection breaks before the answer. Each call is for one more.
    void lose_answer(const zkasio::client& zk, std::string request);
    /// What is asked about this node and about nodes below it fails with `why`, until accept() of the same. "/":
    /// everything. The nearest one counts. With zk_errc::no_auth it is as if the ACLs of these nodes had changed, and
    /// changed again by accept(): node_stat::aversion tells.
    void refuse(std::string path, std::error_code why);
    void accept(const std::string& path);
    /// Servers answer this percentage of all requests with zk_errc::throttled. Throws errc::invalid_argument when it is
    /// none; so does the next one.
    void throttle(int percent);
    /// Before each step the connection that it is about breaks with this probability.
    void lose_connections(int percent);
    /// Each client's server learns of what others write later, as the seed will have it: reads may be stale, as with a
    /// real ensemble.
    void lag(bool on = true);
    /// Between two steps of the servers (100 us). With several seconds, time limits and leases pass under way.
    void step_time(duration d);
    /// znode.container.checkIntervalMs (a minute): how often the servers remove empty containers, and nodes without
    /// children whose time to live has passed since they were written.
    void check_containers_every(duration d);
    /// minSessionTimeout and maxSessionTimeout (4 s and 40 s, as by default those of servers): which session timeouts
    /// are granted, from the next connection on. Throws errc::invalid_argument unless 0 < least <= most.
    void session_timeouts(std::chrono::milliseconds least, std::chrono::milliseconds most);
    /// jute.maxbuffer (1048575): a larger request ends the connection, and is not carried out.
    void max_request(std::size_t bytes);

    // -------------------------------------------------------------------------------------------------- nodes
    // As the leader has them; what is changed here happens at once, behind the clients' backs. Paths are whole, also
    // where clients have a chroot. The last three throw zkasio::error.
    bool exists(const std::string& path) const;
    std::optional<std::string> data(const std::string& path) const;  ///< nothing: there is no such node
    std::optional<node_stat> stat(const std::string& path) const;
    std::vector<std::string> children(const std::string& path) const;  ///< names, sorted; none: of no node, too
    std::vector<std::string> paths() const;                            ///< of all nodes but "/", sorted
    /// The node is ephemeral, and of this client's session.
    bool owns(const zkasio::client& zk, const std::string& path) const;
    void create(const std::string& path, std::string data = {});  ///< with the parents that are missing; persistent
    void set(const std::string& path, std::string data);
    void remove(const std::string& path);

    // -------------------------------------------------------------------------------------- what is left behind
    std::size_t watches() const;  ///< that the servers hold, for all clients
    std::size_t watches(const zkasio::client& zk) const;
    std::vector<std::string> watched_paths() const;  ///< sorted, each once
    /// How many requests of this client the servers have carried out: heartbeats of the session, too, but no pings.
    std::size_t requests(const zkasio::client& zk) const;
    std::size_t sessions() const;     ///< that live
    std::size_t connections() const;  ///< of clients that were not closed, whether they stand or are tried
    std::int64_t session_id(const zkasio::client& zk) const;  ///< of the client's newest session; 0: none yet
    bool is_connected(const zkasio::client& zk) const;        ///< as its server sees it

    /// Is called with each step that the servers take, before they do: "0.0021 s apply 0: create /a". It may cut(),
    /// hold_down() or expire(), and what is no longer possible then does not happen. Null: nobody.
    void on_step(std::function<void(std::string_view)> log);

private:
    void run_task(asio::awaitable<void> task, duration limit);
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace zkasio::testing
