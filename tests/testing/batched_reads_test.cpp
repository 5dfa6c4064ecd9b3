// Recipes that read many nodes ask for them in few requests: what that costs, lost connections, and servers that do not
// know such requests.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"
#include "testing/steps.hpp"

#include <zkasio/discovery/registry.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace batched_reads_testing {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// Batches begin with 8 nodes, two at a time, and become larger.
std::size_t most_batches_of(std::size_t n) { return n / 32 + 4; }

std::string number(std::size_t n) {
    char text[11];
    std::snprintf(text, sizeof text, "%010u", static_cast<unsigned>(n));
    return text;
}

std::string contender(std::size_t n) { return "/l/_c_0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f-lock-" + number(n); }

void create_contenders(fake_ensemble& e, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) e.create(contender(i), std::to_string(i));
}

service_instance instance(std::size_t n) {
    return service_instance("orders").id("i" + std::to_string(n)).address("10.0.0.1").port(80);
}

std::vector<std::string> paths(std::size_t n) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < n; ++i) all.push_back("/a/" + std::to_string(i));
    return all;
}

void create_nodes(fake_ensemble& e, std::size_t n) {
    for (const std::string& path : paths(n)) e.create(path, path);
}

asio::awaitable<void> read_started(client zk, std::size_t n, std::vector<std::string>& found) {
    const std::vector<pending_data> asked = toolbox(zk).start_gets(paths(n));
    for (const pending_data& one : asked) {
        const node_data node = co_await one.result();
        found.push_back(node.data);
    }
}

}  // namespace

TEST_CASE("cost of list_lock(): a request for 32 contenders", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        create_contenders(e, n);
        std::vector<client> zk = connected_clients(e, 1);
        const cost_meter meter(e);
        const lock_listing found = e.run(list_lock(zk[0], "/l"));
        const cost listed = meter.read();
        const cost_meter again(e);
        const std::vector<contender_info> all = e.run(mutex(zk[0], "/l").contenders());
        const cost of_mutex = again.read();
        INFO(n << " contenders: " << listed << "; by the mutex: " << of_mutex);
        CHECK(found.contenders.size() == n);
        CHECK(found.contenders.back().data == std::to_string(n - 1));
        CHECK(all.size() == n);
        for (const cost& c : {listed, of_mutex}) {
            CHECK(c.requests <= most_batches_of(n) + 3);  // one by one: n + 3
            CHECK(c.writes == 0);
            CHECK(c.listings == 1);
            CHECK(c.watches == 0);
        }
        close_all(e, zk);
    }
}

TEST_CASE("cost of registry::instances(): a request for 32 instances", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        for (std::size_t i = 0; i < n; ++i) {
            const service_instance one = instance(i);
            e.create("/services/orders/" + one.id(), one.to_json());
        }
        std::vector<client> zk = connected_clients(e, 1);
        const registry services(zk[0], "/services");
        const cost_meter meter(e);
        const service_view found = e.run(services.instances("orders"));
        const cost c = meter.read();
        INFO(n << " instances: " << c);
        CHECK(found.instances().size() == n);
        CHECK(c.requests <= most_batches_of(n) + 1);  // one by one: n + 1
        CHECK(c.writes == 0);
        CHECK(c.listings == 1);
        CHECK(c.watches == 0);
        close_all(e, zk);
    }
}

TEST_CASE("cost of transact(): what a body names beforehand is read in one request, by each run", "[numbers]") {
    for (const std::size_t n : {std::size_t{3}, std::size_t{30}}) {
        fake_ensemble e;
        create_nodes(e, n);
        std::vector<client> zk = connected_clients(e, 1);
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<void> {
            const std::vector<std::optional<node_data>> found = co_await u.get_all(paths(n));
            if (++runs == 1) e.set("/a/0", "other");
            u.set("/a/1", found[0]->data);
        };
        const cost_meter meter(e);
        e.run(transact(zk[0], body));
        const cost c = meter.read();
        INFO(n << " nodes: " << c);
        CHECK(runs == 2);
        CHECK(e.data("/a/1") == "other");
        // Two runs, the reads and a transaction each, and a sync; one by one: 2n + 3.
        CHECK(c.requests <= (n < 8 ? 5 : 2 * most_batches_of(n) + 3));
        CHECK(c.writes == 2);
        close_all(e, zk);
    }
}

TEST_CASE("cost of a read of few nodes beside one of n: they take turns", "[numbers]") {
    const bool knows_batches = GENERATE(true, false);
    for (const std::size_t n : {1000U, 10'000U}) {
        fake_ensemble e;
        e.know_multi_read(knows_batches);
        create_nodes(e, n);
        std::vector<client> zk = connected_clients(e, 1);
        std::vector<std::string> before, large, small;
        e.run(read_started(zk[0], 100, before));  // the size of the nodes is known now, or that they are asked one by one
        const cost_meter meter(e);
        const running reading(e.get_executor(), read_started(zk[0], n, large));
        e.run(read_started(zk[0], 8, small));
        const cost c = meter.read();
        INFO("beside " << n << " nodes: " << c);
        CHECK(small == paths(8));
        CHECK(c.requests <= (knows_batches ? 4 : 2 * 256 + 8));
        const std::error_code failed = e.run(reading.code());
        CHECK_FALSE(failed);
        const cost all = meter.read();
        INFO("all: " << all);
        CHECK(large == paths(n));
        CHECK(all.requests <= (knows_batches ? n / 32 + 3 : n + 8));
        close_all(e, zk);
    }
}

TEST_CASE("start_gets: servers that do not know such a request are asked one by one", "[testing]") {
    fake_ensemble e;
    e.know_multi_read(false);
    create_nodes(e, 40);
    create_contenders(e, 40);
    const client zk = e.client(calm());
    e.run(zk.connected());
    std::vector<std::string> found;
    e.run(read_started(zk, 40, found));
    CHECK(found == paths(40));
    const auto connections = e.traffic(zk).connections;
    found.clear();
    e.run(read_started(zk, 40, found));
    CHECK(found == paths(40));
    CHECK(e.run(list_lock(zk, "/l")).contenders.size() == 40);
    CHECK(e.traffic(zk).connections == connections);  // which are known by now
}

TEST_CASE("start_gets: each node has its own answer", "[testing]") {
    fake_ensemble e;
    e.know_multi_read(GENERATE(true, false));
    create_nodes(e, 4);
    e.remove("/a/1");
    e.refuse("/a/2", zk_errc::no_auth);
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const std::vector<pending_data> asked = toolbox(zk).start_gets(paths(4));
        const node_data first = co_await asked[0].result();
        CHECK(first.data == "/a/0");
        CHECK(first.stat.data_length == 4);
        const std::string missing = co_await message_of(asked[1].result());
        CHECK(missing.starts_with("get /a/1: "));
        const std::error_code none = co_await code_of(asked[1].result());
        CHECK(none == zk_errc::no_node);
        const std::error_code refused = co_await code_of(asked[2].result());
        CHECK(refused == zk_errc::no_auth);
        const node_data last = co_await asked[3].result();
        CHECK(last.data == "/a/3");
        const std::vector<pending_data> none_at_all = toolbox(zk).start_gets({});
        CHECK(none_at_all.empty());
        co_await zk.close();
    };
    e.run(body());
}

TEST_CASE("start_gets: lost at any step, the nodes are asked for one by one", "[testing]") {
    std::size_t steps = 0, lost = 0, lost_batches = 0;
    for (std::size_t first = 0; first <= steps && first < 60; ++first) {
        CAPTURE(first);
        fake_ensemble e(first + 1);
        create_nodes(e, 5);
        const client zk = e.client(calm());
        std::vector<std::string> found;
        running reading(e.get_executor(), read_started(zk, 5, found));
        steps = 0;
        bool is_asked = false, is_cut_behind = false;
        e.on_step([&](std::string_view step) {
            is_asked = is_asked || step.find("apply 0: multi_read") != step.npos;
            if (steps++ != first) return;
            is_cut_behind = is_asked;
            asio::post(e.context(), [&e, &zk] { e.cut(zk); });
        });
        const std::error_code code = e.run(reading.code());
        e.on_step(nullptr);
        if (is_cut_behind) {
            ++lost_batches;
            CHECK_FALSE(code);
        }
        CHECK((!code || code == condition::retryable));
        if (!code) CHECK(found == paths(5));
        lost += e.traffic(zk).connections > 1 ? 1 : 0;
        e.run(zk.close());
    }
    CHECK(lost > 0);
    CHECK(lost_batches > 0);
}

TEST_CASE("start_gets: servers that hang up at such a request lose two connections, and no more in ten minutes",
          "[testing]") {
    fake_ensemble e;
    create_contenders(e, 40);
    const client zk = e.client(calm());
    e.run(zk.connected());
    const bool knows_smaller_ones = GENERATE(true, false);
    e.max_request(knows_smaller_ones ? 400 : 150);  // four paths, or two
    const auto lists = [&](int times) {
        const auto before = e.traffic(zk).connections;
        for (int i = 0; i < times; ++i) {
            CHECK(e.run(list_lock(zk, "/l")).contenders.size() == 40);
            e.run_for(10s);
        }
        return e.traffic(zk).connections - before;
    };
    CHECK(lists(50) == (knows_smaller_ones ? 1 : 2));
    e.max_request(100'000);
    e.run_for(2min);
    const auto before = e.requests(zk);
    CHECK(lists(1) == 0);
    CHECK(e.requests(zk) - before < 20);  // together again
}

TEST_CASE("start_gets: a connection that is lost by chance changes little", "[testing]") {
    fake_ensemble e;
    create_nodes(e, 100);
    const client zk = e.client(calm());
    for (int i = 0; i < 5; ++i) {
        std::vector<std::string> found;
        e.lose_answer(zk, "multi_read");
        e.run(read_started(zk, 100, found));
        CHECK(found == paths(100));
        found.clear();
        const auto before = e.requests(zk);
        e.run(read_started(zk, 100, found));
        CHECK(e.requests(zk) - before < 30);
    }
}

TEST_CASE("start_gets: at most two batches are under way, and they are small where nodes are large", "[testing]") {
    fake_ensemble e;
    const std::size_t bytes = GENERATE(as<std::size_t>(), 1, 60'000, 700'000);
    for (const std::string& path : paths(60)) e.create(path, std::string(bytes, 'x'));
    const client zk = e.client(calm());
    e.run(zk.connected());
    std::size_t asked = 0, answered = 0, most_under_way = 0, largest = 0;
    e.on_step([&](std::string_view step) {
        if (step.find("apply 0: multi_read") != step.npos) {
            ++asked;
            const auto nodes = static_cast<std::size_t>(std::count(step.begin(), step.end(), ' '));
            largest = asked > 8 ? std::max(largest, nodes) : largest;
        }
        answered += step.find("deliver 0: ") != step.npos ? 1 : 0;
        most_under_way = std::max(most_under_way, asked - std::min(answered, asked));
    });
    auto read = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 4; ++i) {
            const std::vector<pending_data> all = toolbox(zk).start_gets(paths(60));
            for (const pending_data& one : all) co_await one.result();
        }
    };
    e.run(read());
    e.on_step(nullptr);
    INFO(bytes << " bytes: " << asked << " batches");
    CHECK(most_under_way <= 2);
    if (bytes == 1) CHECK(largest >= 32);
    if (bytes == 60'000) CHECK(asked > 8);
    if (bytes == 60'000) CHECK(largest <= 9);  // four nodes, and the words of the step
    if (bytes == 700'000) CHECK(asked <= 4);   // then one by one
}

TEST_CASE("start_gets: a session's calls take turns, also beside those of the client", "[testing]") {
    fake_ensemble e;
    create_nodes(e, 1000);
    const client zk = e.client(calm());
    const session own = e.run(zk.current_session());
    std::vector<std::string> large, more, small;
    const running first(e.get_executor(), read_started(zk, 1000, large));
    const running second(e.get_executor(), read_started(zk, 1000, more));
    const auto before = e.requests(zk);
    const auto read_small = [&]() -> asio::awaitable<void> {
        const std::vector<pending_data> asked = toolbox(own).start_gets(paths(20));
        for (const pending_data& one : asked) {
            const node_data node = co_await one.result();
            small.push_back(node.data);
        }
    };
    e.run(read_small());
    CHECK(small == paths(20));
    CHECK(e.requests(zk) - before <= 10);
    for (const running* one : {&first, &second}) {
        const std::error_code failed = e.run(one->code());
        CHECK_FALSE(failed);
    }
    CHECK(large == paths(1000));
    CHECK(more == paths(1000));
    CHECK(e.requests(zk) - before < 80);  // other calls do not make them smaller
}

TEST_CASE("start_gets: what nobody waits for any more is not asked for", "[testing]") {
    fake_ensemble e;
    const bool knows_batches = GENERATE(true, false);
    e.know_multi_read(knows_batches);
    create_nodes(e, 2000);
    const client zk = e.client(calm());
    std::vector<std::string> found;
    e.run(zk.connected());
    e.run(read_started(zk, 100, found));
    const auto before = e.requests(zk);
    auto give_up = [&]() -> asio::awaitable<void> {
        const std::vector<pending_data> asked = toolbox(zk).start_gets(paths(2000));
        co_await asked.front().answered();
    };
    e.run(give_up());
    e.run_for(1s);
    CHECK(e.requests(zk) - before <= (knows_batches ? 8 : 2 * 256));
    // Handles that are gone, but whose answers are waited for.
    std::size_t told = 0;
    auto wait = [&]() -> asio::awaitable<void> {
        std::vector<pending_data> asked = toolbox(zk).start_gets(paths(2000));
        asked[1900].then([&] { ++told; });
        asio::awaitable<void> answered = asked[1950].answered();
        asio::awaitable<node_data> last = asked.back().result();
        asked.clear();
        co_await std::move(answered);
        const node_data node = co_await std::move(last);
        CHECK(node.data == "/a/1999");
    };
    running waiting(zk.get_executor(), wait());
    const std::error_code failed = e.run(waiting.code());
    CHECK_FALSE(failed);
    CHECK(told == 1);
}

TEST_CASE("start_gets: without a connection, calls wait as one request each", "[testing]") {
    constexpr std::size_t calls = 20, nodes = 200;
    fake_ensemble e;
    create_nodes(e, nodes);
    const client zk = e.client(calm());
    e.run(zk.connected());
    e.hold_down(zk);
    e.run_for(1s);
    std::vector<std::vector<std::string>> found(calls);
    std::vector<std::unique_ptr<running>> reading;
    for (std::vector<std::string>& one : found)
        reading.push_back(std::make_unique<running>(e.get_executor(), read_started(zk, nodes, one)));
    e.run_for(1s);
    CHECK(zk.stats().pending <= calls);
    std::size_t asked = 0, answered = 0, most_under_way = 0;
    e.on_step([&](std::string_view step) {
        asked += step.find("apply 0: multi_read") != step.npos ? 1 : 0;
        answered += step.find("deliver 0: multi_read") != step.npos ? 1 : 0;
        most_under_way = std::max(most_under_way, asked - std::min(answered, asked));
    });
    e.let_in(zk);
    for (std::size_t i = 0; i < calls; ++i) {
        const std::error_code failed = e.run(reading[i]->code());
        CHECK_FALSE(failed);
        CHECK(found[i] == paths(nodes));
    }
    e.on_step(nullptr);
    CHECK(asked <= calls * nodes / 32 + 4);
    CHECK(most_under_way <= 2);
}

TEST_CASE("start_gets: servers that hang up at a batch lose two connections to all calls that wait", "[testing]") {
    fake_ensemble e;
    create_nodes(e, 100);
    const client zk = e.client(calm());
    e.run(zk.connected());
    std::vector<std::string> before_that;
    e.run(read_started(zk, 100, before_that));  // so the batches are no larger than one that was answered
    e.hold_down(zk);
    e.max_request(40);  // of one path
    e.run_for(1s);
    std::vector<std::vector<std::string>> found(20);
    std::vector<std::unique_ptr<running>> reading;
    for (std::vector<std::string>& one : found)
        reading.push_back(std::make_unique<running>(e.get_executor(), read_started(zk, 100, one)));
    e.run_for(1s);
    const auto before = e.traffic(zk).connections;
    e.let_in(zk);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::error_code failed = e.run(reading[i]->code());
        CHECK_FALSE(failed);
        CHECK(found[i] == paths(100));
    }
    CHECK(e.traffic(zk).connections - before <= 3);
}

TEST_CASE("start_gets: without a connection, each call waits for as long as it may", "[testing]") {
    fake_ensemble e;
    create_nodes(e, 20);
    const client zk = e.client(client_options("fake").session_timeout(40s).connection_timeout(2s));
    const session own = e.run(zk.current_session());
    e.hold_down(zk);
    e.run_for(1s);
    const std::vector<pending_data> of_client = toolbox(zk).start_gets(paths(20));
    const std::vector<pending_data> impatient = toolbox(own).start_gets(paths(20));
    const std::vector<pending_data> patient = toolbox(own.patient()).start_gets(paths(20));
    const auto began = e.now();
    for (const auto* const call : {&of_client, &impatient})
        for (const pending_data& one : *call) {
            const std::error_code code = e.run(code_of(one.result()));
            CHECK(code == errc::not_connected);
        }
    CHECK(e.now() - began > 1900ms);
    CHECK(e.now() - began < 2100ms);
    const std::string why = e.run(message_of(of_client[3].result()));
    CHECK(why.starts_with("get /a/3: "));
    e.run_for(5s);
    const bool lives = GENERATE(true, false);
    if (!lives)  // the session is presumed lost, and there is no connection yet
        for (const pending_data& one : patient) CHECK(e.run(code_of(one.result())) == condition::session_ended);
    const std::vector<pending_data> later = toolbox(zk).start_gets(paths(20));
    e.let_in(zk);
    if (lives) CHECK(e.run(patient[19].result()).data == "/a/19");
    CHECK(e.run(later[19].result()).data == "/a/19");
    e.run(zk.close());
}

TEST_CASE("start_gets: the end of the client ends all of them, and so does that of the session", "[testing]") {
    fake_ensemble e;
    const std::size_t n = GENERATE(as<std::size_t>(), 5, 100);
    create_nodes(e, n);
    const client zk = e.client(calm().close_timeout(1s));
    const session own = e.run(zk.current_session());
    e.silence(zk);
    const std::vector<pending_data> asked = toolbox(own).start_gets(paths(n));
    if (GENERATE(true, false)) {
        e.run(zk.close());
    } else {
        e.run_for(1s);
        e.expire(zk);
        e.let_in(zk);
        e.run_for(30s);
    }
    for (const pending_data& one : asked) CHECK(e.run(code_of(one.result())) == condition::session_ended);
}

}  // namespace batched_reads_testing
