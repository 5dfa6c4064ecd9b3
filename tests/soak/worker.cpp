// One process of a soak: uses most of the library until it is told to stop, and writes down what it gets. README.md.

#include "worker.hpp"

#include <zkasio/error.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/proxy.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace soak {

using namespace std::chrono_literals;

std::chrono::milliseconds worker::about(std::chrono::milliseconds mean) {
    const double drawn = std::exponential_distribution<>(1.0)(random);
    return std::chrono::duration_cast<std::chrono::milliseconds>(mean * std::min(drawn, 8.0));
}

awaitable<void> worker::pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(io, time);
    co_await timer.async_wait(asio::use_awaitable);
}

awaitable<void> worker::think(std::chrono::milliseconds mean) {
    co_await pause(about(std::chrono::duration_cast<std::chrono::milliseconds>(mean / rate)));
}

void worker::start(awaitable<void> task) {
    ++busy;
    asio::co_spawn(io, std::move(task), [this](std::exception_ptr e) {
        --busy;
        if (e) std::rethrow_exception(e);  // out of io_context::run()
    });
}

std::string outcome_of_failure() {
    std::string text;
    bool unknown = true;
    try {
        throw;
    } catch (const zkasio::error& e) {
        unknown = e.outcome_unknown();
        text = e.what();
    } catch (const std::exception& e) {
        text = e.what();
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return (unknown ? "unknown " : "no ") + text;
}

namespace {

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

awaitable<void> note_sessions(worker& w) {
    const zkasio::session_events events = w.zk.events();
    for (;;) {
        const zkasio::session_event event = co_await events.next();
        w.log.note("session 0 " + std::string(to_string(event.state)) + " " + std::to_string(event.session_id));
        if (event.state == zkasio::session_state::closed) co_return;
    }
}

// The directories, which one process makes before the others begin.
awaitable<void> prepare(zkasio::client zk) {
    for (const char* const dir : {"", "/records", "/effects", "/tree", "/accounts"}) co_await zk.create(root + dir);
    for (std::size_t i = 0; i < accounts; ++i) co_await zk.create(account(i), "1000");
    for (const char* const lock :
         {"mutex-0", "mutex-1", "shared", "cohort", "multi-0", "multi-1", "multi-2", "election"})
        co_await zk.create(root + "/records/" + lock);
    for (int i = 0; i < 10; ++i) co_await zk.create(root + "/effects/w" + std::to_string(i));
}

// The contenders that are there for more than a moment, in order.
awaitable<std::vector<std::string>> contenders(worker& w, std::string dir) {
    const auto number = [](const std::string& name) { return name.substr(name.size() - 10); };
    std::vector<std::string> before, both;
    for (int i = 0; i < 50 && both.empty(); ++i) {
        zkasio::node_children now;
        try {
            now = co_await w.zk.children(dir);
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::zk_errc::no_node) throw;  // the container of a lock that nobody wants
        }
        std::erase_if(now.names, [](const std::string& name) { return name.size() <= 10; });
        for (const std::string& name : now.names)
            if (std::find(before.begin(), before.end(), name) != before.end()) both.push_back(name);
        before = std::move(now.names);
        co_await w.pause(100ms);
    }
    std::sort(both.begin(), both.end(),
              [&](const std::string& a, const std::string& b) { return number(a) < number(b); });
    co_return both;
}

// An operator deletes the node of a contender: most often that of the holder.
awaitable<void> remove_contender(worker& w, std::string lock) {
    std::string removed = "nothing";
    try {
        const std::string dir = root + "/" + lock;
        const std::vector<std::string> all = co_await contenders(w, dir);
        if (!all.empty()) {
            removed = dir + "/" + all[w.one_in(3) ? w.random() % all.size() : 0];
            w.log.note("removing 0 " + removed);  // before: from now on it may be gone
            co_await w.zk.remove(removed);
        }
    } catch (const zkasio::error& e) {
        removed += std::string(" ") + e.what();
    }
    say("removed " + removed);
}

// What is on the servers at the end.
awaitable<void> report(worker& w) {
    co_await w.zk.sync(root);
    const zkasio::node_data counter = co_await w.zk.get(root + "/counter");
    std::uint64_t sum = 0;
    for (const char byte : counter.data) sum = sum << 8 | static_cast<unsigned char>(byte);
    w.log.note("final 0 counter " + std::to_string(sum));
    for (std::size_t i = 0; i < accounts; ++i) {
        const zkasio::node_data node = co_await w.zk.get(account(i));
        w.log.note("final 0 account " + std::to_string(i) + " " + node.data);
    }
    for (const char* const dir : {"/effects", "/records"}) {
        const zkasio::node_children names = co_await w.zk.children(root + dir);
        for (const std::string& name : names.names) {
            const zkasio::node_data node = co_await w.zk.get(root + dir + "/" + name);
            w.log.note("final 0 version " + std::string(dir).substr(1) + "/" + name + " " +
                       std::to_string(node.stat.version));
        }
    }
    for (const char* const queue : {"/queue", "/takes"}) {
        const zkasio::work_queue q(w.zk, root + queue);
        const zkasio::work_queue_info left = co_await q.info();
        w.log.note("final 0 left " + std::string(queue).substr(1) + " " +
                   std::to_string(left.waiting + left.claimed + left.later + left.dead));
    }
    say("reported");
}

awaitable<void> obey(worker& w, std::vector<std::unique_ptr<zkasio::testing::proxy>>& network, bool works) {
    asio::posix::stream_descriptor in(w.io, ::dup(STDIN_FILENO));
    std::string buffer;
    for (;;) {
        const std::size_t n = co_await asio::async_read_until(in, asio::dynamic_buffer(buffer), '\n',
                                                              asio::use_awaitable);
        std::istringstream words(buffer.substr(0, n - 1));
        buffer.erase(0, n);
        std::string command, argument;
        words >> command >> argument;
        if (command == "work") {
            if (works) {
                start_locks(w);
                start_elections(w);
                start_structures(w);
                start_views(w);
                w.start(watch_leases(w));
            }
            say("works");
        } else if (command == "prepare") {
            co_await prepare(w.zk);
            say("prepared");
        } else if (command == "remove") {
            co_await remove_contender(w, argument);
        } else if (command == "cut") {
            for (const auto& p : network)
                p->cut_all(w.one_in(2) ? zkasio::testing::proxy::end::fin : zkasio::testing::proxy::end::rst);
        } else if (command == "silence") {
            for (const auto& p : network) p->silence(argument == "on");
        } else if (command == "refuse") {
            for (const auto& p : network) p->refuse(argument == "on");
        } else if (command == "delay") {
            for (const auto& p : network) p->delay(std::chrono::milliseconds(std::atoi(argument.c_str())));
        } else if (command == "stop") {
            w.stopping = true;
            while (w.busy > 0) co_await w.pause(50ms);
            say("stopped");
        } else if (command == "drain") {
            co_await drain(w);
            say("drained");
        } else if (command == "look") {
            say("sees " + co_await what_is_seen(w));
        } else if (command == "report") {
            co_await report(w);
        } else if (command == "close") {
            w.seen.reset();
            co_await w.zk.idle();
            co_await w.zk.idle();
            const zkasio::close_result closed = co_await w.zk.close();
            say(closed == zkasio::close_result::confirmed ? "closed" : "left");
            std::_Exit(0);
        }
    }
}

int run(const std::vector<std::string>& args) {
    if (args.size() != 7) {
        std::fprintf(stderr,
                     "usage: zkasio_soak_worker SERVERS NAME HISTORY SEED RATE TIMEOUT proxied|direct|operator\n");
        return 2;
    }
    std::string servers = args[0];
    std::vector<std::unique_ptr<zkasio::testing::proxy>> network;
    if (args[6] == "proxied") {
        std::istringstream list(servers);
        servers.clear();
        for (std::string server; std::getline(list, server, ',');) {
            network.push_back(std::make_unique<zkasio::testing::proxy>(server));
            servers += (servers.empty() ? "" : ",") + network.back()->address();
        }
    }
    asio::io_context io(1);
    history log(args[2]);
    zkasio::client_options options(servers);
    options.session_timeout(std::chrono::milliseconds(std::stoi(args[5])));
    options.retry(zkasio::retry_policy::forever());
    worker w(io, zkasio::client(io, options), log, args[1], std::stod(args[4]), std::stoull(args[3]));
    log.note("start 0 " + std::to_string(::getpid()));
    asio::co_spawn(io, note_sessions(w), asio::detached);
    asio::co_spawn(io, obey(w, network, args[6] != "operator"), [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    });
    io.run();
    return 1;  // the end of the commands is an exception
}

}  // namespace
}  // namespace soak

int main(int argc, char** argv) try {
    return soak::run({argv + 1, argv + argc});
} catch (const std::exception& e) {
    std::fprintf(stderr, "zkasio_soak_worker: %s\n", e.what());
    std::_Exit(1);
}
