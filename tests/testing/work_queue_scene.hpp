#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace work_queue_scenes {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;
using texts = std::vector<std::string>;

/// A list for a co_await expression: g++ 12 does not compile one in braces there.
template <class... Texts>
texts of(const Texts&... each) {
    texts all;
    (all.emplace_back(each), ...);
    return all;
}

/// Lets so much of the ensemble's time pass.
inline asio::awaitable<void> sleep(std::chrono::nanoseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

/// What an operation has ended with.
struct ended {
    std::error_code code;
    bool unknown = false;
    std::string said;
};

template <class T>
asio::awaitable<ended> end_of(asio::awaitable<T> operation) {
    ended e;
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const error& x) {
        e.code = x.code();
        e.unknown = x.outcome_unknown();
        e.said = x.what();
    } catch (const std::system_error& x) {
        e.code = x.code();
        e.said = x.what();
    }
    co_return e;
}

/// The data of the items that wait or are claimed, in the order of their names.
inline texts items(const fake_ensemble& e, const std::string& path = "/q") {
    texts all;
    for (const std::string& name : e.children(path + "/entries")) all.push_back(*e.data(path + "/entries/" + name));
    return all;
}

/// A layout, and where a queue with the path "/q" has its nodes.
struct layout_case {
    std::string name;
    queue_layout layout;
    std::string items = "/q", claims = "/q-taken", dead = "/q-dead", later = "/q-later", receipts = "/q-receipts";

    work_queue queue(client zk, work_queue_options options = work_queue_options()) const {
        return work_queue(std::move(zk), "/q", options.layout(layout));
    }
    /// What each item of the layout needs.
    put_options how() const {
        put_options h;
        if (layout.kind() == queue_kind::curator_id) h.id("some id");
        return h;
    }
    bool is_framed() const {
        const queue_kind k = layout.kind();
        return k != queue_kind::kazoo_locking && k != queue_kind::kazoo && k != queue_kind::curator_simple;
    }
    /// All nodes of an empty queue.
    texts directories() const {
        texts all = {"/q"};
        for (const std::string& path : {items, claims, dead, later, receipts})
            if (path != "/q") all.push_back(path);
        std::sort(all.begin(), all.end());
        return all;
    }
};

inline std::vector<layout_case> all_layouts() {
    return {
        {"kazoo's LockingQueue", queue_layout::kazoo_locking(), "/q/entries", "/q/taken", "/q/dead", "/q/later",
         "/q/receipts"},
        {"kazoo's Queue", queue_layout::kazoo()},
        {"DistributedQueue", queue_layout::curator()},
        {"DistributedQueue with claims", queue_layout::curator("/locks"), "/q", "/locks"},
        {"DistributedPriorityQueue", queue_layout::curator_priority()},
        {"DistributedPriorityQueue with claims", queue_layout::curator_priority("/locks"), "/q", "/locks"},
        {"DistributedDelayQueue", queue_layout::curator_delay()},
        {"DistributedDelayQueue with claims", queue_layout::curator_delay("/locks"), "/q", "/locks"},
        {"DistributedIdQueue", queue_layout::curator_id()},
        {"DistributedIdQueue with claims", queue_layout::curator_id("/locks"), "/q", "/locks"},
        {"SimpleDistributedQueue", queue_layout::curator_simple()},
    };
}

/// The nodes that do not end with a session: a session whose end was cut off lives on, with its receipts.
inline texts lasting_nodes(const fake_ensemble& e) {
    texts all = e.paths();
    std::erase_if(all, [&](const std::string& path) { return e.stat(path)->ephemeral_owner != 0; });
    return all;
}

/// An ensemble and a client of it.
struct scene {
    explicit scene(std::uint64_t seed = 1) : ensemble(seed), zk(ensemble.client(calm())) {}

    /// Runs `body()`, and checks that nothing is left but the queue's items.
    template <class Body>
    void run(Body body) {
        auto all = [&]() -> asio::awaitable<void> {
            co_await body();
            ensemble.on_step(nullptr);
            co_await zk.idle();
            for (const char* claims : {"/q/taken", "/q-taken", "/locks"}) CHECK(ensemble.children(claims).empty());
            check_reports();
            co_await zk.close();
        };
        ensemble.run(all);
        CHECK(ensemble.watches() == 0);
    }

    /// Each claim was counted, and so was its end.
    void check_reports() const {
        const client_stats seen = zk.stats();
        std::uint64_t claimed = 0, ended = 0;
        for (const commit_stats& c : seen.commits)
            if (c.kind == commit_kind::claim) claimed = c.parts;
        for (const std::uint64_t n : seen.deliveries.ended) ended += n;
        CHECK(ended == claimed);
        CHECK(seen.deliveries.held == 0);
    }

    fake_ensemble ensemble;
    const client zk;
};

}  // namespace work_queue_scenes
