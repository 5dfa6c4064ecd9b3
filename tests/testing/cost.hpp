#pragma once

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

/// What users of a recipe cost the servers, for tests that compare it with a law (docs/cost.md has the laws as
/// tables). A test has the tag [numbers], and measures for each number of users:
///
///     for (const std::size_t n : user_counts) {
///         fake_ensemble e;
///         ... n users, connected ...
///         const cost_meter meter(e);
///         ... what is measured ...
///         const cost c = meter.read();
///         INFO(n << " users: " << c);
///         CHECK(c.writes <= 2 * n);            // a create and a removal each
///         CHECK(c.listings <= n + 1);
///     }
///
/// The clients of such a test have rare_heartbeats(), so that the reads of idle sessions and the heartbeats of held
/// locks, which depend on time and not on what is done, do not disturb the counts.
namespace zkasio::test {

inline constexpr std::size_t user_counts[] = {10, 100, 1000};
/// Of users with a client each: to connect 1000 clients to the fake takes seconds, and a minute where all contend. With
/// these (in an optimised build, some minutes): ZKASIO_COST_CLIENTS=1000 zkasio_testing_tests "[numbers]"
inline std::array<std::size_t, 3> client_counts() {
    const char* const most = std::getenv("ZKASIO_COST_CLIENTS");
    return {10, 100, most ? std::stoul(most) : 200};
}

struct cost {
    std::uint64_t requests, writes, listings;
    std::uint64_t bytes;                ///< both ways
    std::int64_t watches, ephemerals;   ///< more (or less) than at the beginning

    friend std::ostream& operator<<(std::ostream& to, const cost& c) {
        return to << c.requests << " requests, " << c.writes << " of them writes, " << c.listings << " listings, "
                  << c.bytes << " bytes, " << c.watches << " watches, " << c.ephemerals << " ephemerals";
    }
};

class cost_meter {
public:
    explicit cost_meter(const testing::fake_ensemble& e)
        : ensemble_(e), traffic_(e.traffic()), watches_(e.watches()), ephemerals_(e.ephemerals()) {}

    /// Since the meter was made.
    cost read() const {
        const testing::traffic t = ensemble_.traffic().since(traffic_);
        const auto more = [](std::size_t now, std::size_t before) {
            return static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
        };
        return {t.requests, t.writes, t.listings, t.bytes_in + t.bytes_out, more(ensemble_.watches(), watches_),
                more(ensemble_.ephemerals(), ephemerals_)};
    }

private:
    const testing::fake_ensemble& ensemble_;
    testing::traffic traffic_;
    std::size_t watches_, ephemerals_;
};

/// What it costs that `what` happens, and all that follows from it.
inline cost cost_in_a_minute(testing::fake_ensemble& e, const std::function<void()>& what) {
    const cost_meter meter(e);
    what();
    e.run_for(std::chrono::minutes(1));
    return meter.read();
}

/// What n users cost that begin at once, each `use(i)`.
inline cost cost_of_users(testing::fake_ensemble& e, std::size_t n,
                          const std::function<asio::awaitable<void>(std::size_t)>& use) {
    const cost_meter meter(e);
    std::vector<std::unique_ptr<running>> users;
    for (std::size_t i = 0; i < n; ++i) users.push_back(std::make_unique<running>(e.get_executor(), use(i)));
    for (const auto& one : users) {
        const std::error_code failed = e.run(one->code());
        CHECK_FALSE(failed);
    }
    e.run_for(std::chrono::seconds(1));  // nodes of destroyed guards are removed
    return meter.read();
}

/// Sessions so long that within a test no idle session reads and no lease is renewed.
inline client_options rare_heartbeats(testing::fake_ensemble& e) {
    using namespace std::chrono_literals;
    e.session_timeouts(1s, 20h);
    return client_options("fake").session_timeout(20h).connection_timeout(20h);
}

/// Clients with rare_heartbeats().
inline std::vector<client> connected_clients(testing::fake_ensemble& e, std::size_t n) {
    std::vector<client> all;
    for (std::size_t i = 0; i < n; ++i) all.push_back(e.client(rare_heartbeats(e)));
    for (const client& zk : all) e.run(zk.connected());
    return all;
}

inline void close_all(testing::fake_ensemble& e, std::vector<client>& all) {
    for (client& zk : all) e.run(zk.close());
    all.clear();
    e.run_dry();
}

}  // namespace zkasio::test
