#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

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
            CHECK(ensemble.children("/q/taken").empty());
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
