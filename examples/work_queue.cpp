// Jobs that several workers share, with retries and dead letters: work_queue 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/queues/work_queue.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

// [orders]
// const zkasio::work_queue jobs(zk, "/jobs", zkasio::work_queue_options().most_deliveries(3));
// co_await jobs.create();  // only needed for put_with(); the simple case is jobs.put("resize 4711")
//
// The order and its job are written together: no order without a job, no job without an order.
asio::awaitable<void> accept_order(zkasio::client zk, zkasio::work_queue jobs, std::string id) {
    zkasio::transaction both;
    both.create("/jobs-example/orders/" + id, "accepted");
    jobs.put_with(both, id);
    co_await zk.multi(std::move(both));
}

// An attempt that fails is made again after a pause; after most_deliveries(3), an operator decides.
asio::awaitable<void> work(zkasio::work_queue jobs) {
    auto deliver = [](zkasio::delivery& job) -> asio::awaitable<void> {
        const std::string& id = job.item();
        std::cout << "order " << id << ", attempt " << job.attempt() << "\n";
        if (id == "no-such-street") throw std::runtime_error("there is no such street");
        if (id == "nobody-home" && job.attempt() == 1) throw std::runtime_error("nobody is at home");
        // The effect and the end of the job are one transaction: exactly once, whichever process dies when.
        zkasio::transaction effect;
        effect.set("/jobs-example/orders/" + id, "delivered");
        co_await job.done(std::move(effect));
    };
    const auto how = zkasio::consume_options().parallel(4).pause(100ms);
    co_await jobs.consume(deliver, how);
}
// [/orders]

// [operator]
asio::awaitable<void> show_dead(zkasio::work_queue jobs) {
    const std::vector<zkasio::dead_item> dead = co_await jobs.dead();
    for (const zkasio::dead_item& d : dead)
        std::cout << d.item << " was given up: " << d.reason << "; jobs.revive(\"" << d.name << "\") tries again\n";
}
// [/operator]

asio::awaitable<void> example(zkasio::client zk, asio::io_context& io) {
    co_await zk.remove_recursive("/jobs-example");
    const zkasio::work_queue jobs(zk, "/jobs-example/jobs", zkasio::work_queue_options().most_deliveries(3));
    co_await jobs.create();
    co_await zk.create("/jobs-example/orders");
    for (const char* id : {"one", "no-such-street", "nobody-home", "two"}) co_await accept_order(zk, jobs, id);

    asio::co_spawn(io, work(jobs), [](std::exception_ptr) {});  // ends with the client
    zkasio::work_queue_info n = co_await jobs.info();
    while (n.waiting + n.claimed > 0) {
        const auto changes = co_await zk.children_and_watch("/jobs-example/jobs/entries");
        if (!changes.value.names.empty()) co_await changes.changes.changed();
        n = co_await jobs.info();
    }
    expect(n.dead == 1, "one order cannot be delivered");
    for (const char* id : {"one", "nobody-home", "two"}) {
        const zkasio::node_data order = co_await zk.get("/jobs-example/orders/" + std::string(id));
        expect(order.data == "delivered", "the others are");
    }
    co_await show_dead(jobs);
    co_await zk.close();
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers)}, io), rethrow);
    io.run();
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
