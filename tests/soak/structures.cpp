#include "worker.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace soak {
namespace {

using namespace std::chrono_literals;

// Notes an operation that may have an effect, before and afterwards. `act` completes with what is known of the effect.
awaitable<bool> attempt(worker& w, std::string what, std::function<awaitable<std::string>()> act) {
    const std::uint64_t n = w.log.next_operation();
    const std::size_t space = what.find(' ');
    w.log.note(what.substr(0, space) + " " + std::to_string(n) + (space == what.npos ? "" : what.substr(space)));
    std::string outcome;
    bool succeeded = true;
    try {
        outcome = co_await act();
        outcome = outcome.empty() ? "yes" : "yes " + outcome;
    } catch (const std::exception&) {
        outcome = outcome_of_failure();
        succeeded = false;
    }
    w.log.note("end " + std::to_string(n) + " " + outcome);
    co_return succeeded;
}

awaitable<void> count(worker& w) {
    const zkasio::atomic_counter counter(w.zk, root + "/counter");
    std::int64_t delta = 0;
    const std::function<awaitable<std::string>()> add = [&]() -> awaitable<std::string> {
        const std::int64_t sum = co_await counter.add(delta);
        co_return std::to_string(sum);
    };
    while (!w.stopping) {
        co_await w.think(1s);
        delta = 1 + static_cast<std::int64_t>(w.random() % 9);
        co_await attempt(w, "add " + std::to_string(delta), add);
    }
}

awaitable<void> take_ids(worker& w) {
    const zkasio::id_allocator ids(w.zk, root + "/ids", zkasio::id_options().block(16));
    const std::function<awaitable<std::string>()> next = [&]() -> awaitable<std::string> {
        const std::uint64_t id = co_await ids.next();
        co_return std::to_string(id);
    };
    while (!w.stopping) {
        co_await w.think(300ms);
        co_await attempt(w, "id", next);
    }
}

// From one account to another: no money is made, or lost.
awaitable<void> transfer(worker& w) {
    std::vector<std::string> both;
    int amount = 0;
    const auto body = [&](zkasio::unit& u) -> awaitable<void> {
        const std::vector<std::optional<zkasio::node_data>> found = co_await u.get_all(both);
        u.set(both[0], std::to_string(std::stoi(found[0].value().data) - amount));
        u.set(both[1], std::to_string(std::stoi(found[1].value().data) + amount));
    };
    const std::function<awaitable<std::string>()> move = [&]() -> awaitable<std::string> {
        zkasio::transact_options how;
        if (w.one_in(2)) how.receipts(root + "/receipts");  // the outcome is certain although an answer is lost
        co_await zkasio::transact(w.zk, body, how);
        co_return std::string();
    };
    while (!w.stopping) {
        co_await w.think(1s);
        const std::size_t from = w.random() % accounts, to = (from + 1 + w.random() % (accounts - 1)) % accounts;
        amount = 1 + static_cast<int>(w.random() % 9);
        both = {account(from), account(to)};
        co_await attempt(w, "move " + std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(amount),
                         move);
    }
}

awaitable<void> put(worker& w, std::string name) {
    const zkasio::work_queue queue(w.zk, root + "/" + name);
    std::string item;
    const std::function<awaitable<std::string>()> act = [&]() -> awaitable<std::string> {
        co_await queue.put(item);
        co_return std::string();
    };
    while (!w.stopping) {
        co_await w.think(1s);
        item = w.name + "-" + std::to_string(w.random());
        co_await attempt(w, "put " + name + " " + item, act);
    }
}

// Each item once, with its effect: a write to a node of this process, whose version counts them.
awaitable<void> consume(worker& w) {
    const zkasio::work_queue queue(w.zk, root + "/queue");
    const std::string effects = root + "/effects/" + w.name.substr(0, w.name.find('.'));
    for (;;) {
        zkasio::delivery job = co_await queue.receive();
        if (!w.one_in(100)) co_await w.pause(w.about(10ms));
        else co_await w.pause(w.about(3s));  // longer than a session, sometimes
        if (w.one_in(50)) {
            co_await job.again();
            continue;
        }
        const std::function<awaitable<std::string>()> finish = [&]() -> awaitable<std::string> {
            zkasio::transaction effect;
            effect.set(effects, job.item());
            co_await job.done(std::move(effect));
            co_return std::string();
        };
        co_await attempt(w, "finish queue " + job.item(), finish);
    }
}

awaitable<void> take(worker& w) {
    const zkasio::work_queue queue(w.zk, root + "/takes");
    for (;;) {
        const std::function<awaitable<std::string>()> act = [&]() -> awaitable<std::string> {
            std::string item = co_await queue.take();
            co_return item;
        };
        co_await attempt(w, "take takes", act);
        co_await w.pause(w.about(10ms));
    }
}

// What goes on until it is cancelled. Errors are those of outages that were too long.
awaitable<void> keep_on(worker& w, awaitable<void> (*task)(worker&)) {
    while (!w.consumers_end) {
        try {
            co_await task(w);
        } catch (const zkasio::error&) {
        }
        co_await w.pause(500ms);
    }
}

}  // namespace

void start_structures(worker& w) {
    w.start(count(w));
    w.start(take_ids(w));
    w.start(transfer(w));
    w.start(put(w, "queue"));
    w.start(put(w, "takes"));
    for (auto* const task : {&consume, &take}) {
        ++w.consumers;
        const auto cancellation = std::make_shared<asio::cancellation_signal>();
        w.cancel_consumers.push_back(cancellation);
        asio::co_spawn(w.io, keep_on(w, task),
                       asio::bind_cancellation_slot(cancellation->slot(), [&w](std::exception_ptr) { --w.consumers; }));
    }
}

awaitable<void> drain(worker& w) {
    for (int empty = 0; empty < 3;) {
        co_await w.pause(500ms);
        try {
            std::size_t left = 0;
            for (const char* const name : {"/queue", "/takes"}) {
                const zkasio::work_queue queue(w.zk, root + name);
                const zkasio::work_queue_info info = co_await queue.info();
                left += info.waiting + info.claimed;
            }
            empty = left == 0 ? empty + 1 : 0;
        } catch (const zkasio::error&) {
            empty = 0;
        }
    }
    w.consumers_end = true;
    for (const auto& c : w.cancel_consumers) c->emit(asio::cancellation_type::terminal);
    while (w.consumers > 0) co_await w.pause(50ms);
}

}  // namespace soak
