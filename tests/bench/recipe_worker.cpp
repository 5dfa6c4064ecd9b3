// zkasio's election, tree cache, counter, ids and queue as their users write them, driven by lines:
// recipe_peers/README.md.

#include "meter.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace bench {
namespace {

using asio::awaitable;

void give_up(std::exception_ptr e) {
    if (!e) return;
    try {
        std::rethrow_exception(e);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "zkasio: %s\n", failure.what());
    }
    std::_Exit(1);
}

void say(const char* first, double a, double b = 0, double c = 0, double d = 0) {
    std::printf("%s %.9f %.9f %.9f %.9f\n", first, a, b, c, d);
    std::fflush(stdout);
}

double heap() {
    ::malloc_trim(0);
    const struct mallinfo2 m = ::mallinfo2();
    return static_cast<double>(m.uordblks + m.hblkhd);
}

class worker {
public:
    worker(asio::io_context& io, const std::string& server, int timeout_ms)
        : io_(io),
          options_(zkasio::client_options(server).session_timeout(std::chrono::milliseconds(timeout_ms))),
          zk_(io.get_executor(), options_) {}

    awaitable<void> run() {
        co_await zk_.connected();
        say("ready", 0);
        asio::posix::stream_descriptor in(io_, ::dup(STDIN_FILENO));
        std::string buffer;
        for (;;) {
            const std::size_t n = co_await asio::async_read_until(in, asio::dynamic_buffer(buffer), '\n',
                                                                  asio::use_awaitable);
            std::istringstream words(buffer.substr(0, n - 1));
            buffer.erase(0, n);
            std::string command, path;
            double x = 0, y = 0, z = 0;
            words >> command;
            if (command == "fill" || command == "consume") words >> kind_;
            words >> path >> x >> y >> z;
            if (command == "elect") asio::co_spawn(io_, elect(path), give_up);
            else if (command == "resign") co_await resign();
            else if (command == "cache") co_await read_tree(path);
            else if (command == "alone") co_await without_client();
            else if (command == "observe") co_await observe(path);
            else if (command == "fleet") co_await make_fleet(path, static_cast<int>(x));
            else if (command == "current") co_await until_fleet_shows(path);
            else if (command == "follow") co_await follow(path, static_cast<int>(x));
            else if (command == "until") co_await until_all_see(path);
            else if (command == "add") co_await add(path, static_cast<int>(x), static_cast<int>(y));
            else if (command == "ids") co_await take_ids(path, static_cast<int>(x), static_cast<int>(y));
            else if (command == "fill") co_await fill(path, static_cast<int>(x));
            else if (command == "consume") consume(path, static_cast<int>(x));
            else if (command == "stop") stop();
            else if (command == "write") co_await write(path, static_cast<int>(x), y, z);
        }
    }

private:
    awaitable<void> elect(std::string path) {
        zkasio::leader_election election(zk_, std::move(path));
        leader_ = co_await election.campaign();
        say("leads", now());
    }
    awaitable<void> resign() {
        const double began = now();
        co_await leader_.resign();
        say("resigned", began);
    }

    awaitable<void> read_tree(std::string path) {
        before_ = heap();
        const double began = now();
        cache_.emplace(zk_, path);
        co_await cache_->ready();
        const double took = now() - began;
        say("cached", took, static_cast<double>(cache_->snapshot().size()), heap() - before_);
    }
    // What is left when the C library has gone, with all that it notes of each watch: the nodes.
    awaitable<void> without_client() {
        co_await zk_.close();
        say("alone", heap() - before_);
    }

    awaitable<void> observe(std::string path) {
        group_.emplace(zk_, path);
        co_await group_->ready();
        say("observing", static_cast<double>(group_->members().members.size()));
    }

    // Caches of one tree, each with a client of its own.
    awaitable<void> make_fleet(std::string path, int n) {
        const double began = now();
        for (int i = 0; i < n; ++i) fleet_.emplace_back(zkasio::client(io_.get_executor(), options_), path);
        for (const zkasio::tree_cache& cache : fleet_) co_await cache.ready();
        say("fleet", now() - began);
    }
    awaitable<void> until_fleet_shows(std::string path) {
        asio::steady_timer pause(io_);
        for (const zkasio::tree_cache& cache : fleet_)
            for (;;) {
                const zkasio::tree_view view = cache.snapshot();
                if (view.current() && view.contains(path)) break;
                pause.expires_after(std::chrono::milliseconds(5));
                co_await pause.async_wait(asio::use_awaitable);
            }
        say("current", now());
    }

    // `readers` coroutines hear of every change of the tree.
    awaitable<void> follow(std::string path, int readers) {
        cache_.emplace(zk_, path);
        co_await cache_->ready();
        seen_.assign(static_cast<std::size_t>(readers), {});
        cpu_ = cpu_seconds();
        for (std::string& last : seen_) asio::co_spawn(io_, read(cache_->changes(), path + "/end", last), give_up);
        say("following", now());
    }
    awaitable<void> read(zkasio::cache_changes changes, std::string end, std::string& last) {
        while (last != "end") {
            const zkasio::cache_update update = co_await changes.next();
            ++updates_;
            deltas_ += static_cast<double>(update.changes.size());
            looked_again_ += update.look_again;
            last = update.now.find(end).data();
        }
        at_end_ = now();
        ++ended_;
    }
    awaitable<void> until_all_see(std::string) {
        asio::steady_timer pause(io_);
        while (ended_ < seen_.size()) {
            pause.expires_after(std::chrono::milliseconds(5));
            co_await pause.async_wait(asio::use_awaitable);
        }
        say("seen", at_end_, updates_, deltas_, cpu_seconds() - cpu_);
    }

    // So many changes of `nodes` nodes in so many seconds; then the last.
    awaitable<void> write(std::string path, int nodes, double rate, double seconds) {
        constexpr int writers = 200;
        const double began = now();
        int left = writers;
        for (int i = 0; i < writers; ++i)
            asio::co_spawn(io_, write_one(path, i, nodes, writers / rate, began + seconds), [&](std::exception_ptr e) {
                give_up(e);
                --left;
            });
        asio::steady_timer pause(io_);
        while (left > 0) {
            pause.expires_after(std::chrono::milliseconds(1));
            co_await pause.async_wait(asio::use_awaitable);
        }
        const double took = now() - began;
        co_await zk_.create(path + "/end", "end");
        say("wrote", now(), static_cast<double>(written_), took);
    }
    awaitable<void> write_one(std::string path, int first, int nodes, double each, double end) {
        asio::steady_timer clock(io_);
        auto at = std::chrono::steady_clock::now();
        for (int i = first; now() < end; i += 200) {
            const int n = i % nodes;
            const std::string node = path + "/" + std::to_string(n % (nodes / 100)) + "/node-" + std::to_string(n);
            co_await zk_.set(node, std::to_string(i));
            ++written_;
            at += std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(each));
            clock.expires_at(at);
            co_await clock.async_wait(asio::use_awaitable);
        }
    }

    // `n` coroutines at once.
    template <class Each>
    awaitable<double> all(int n, Each each) {
        const double began = now();
        int left = n;
        for (int i = 0; i < n; ++i)
            asio::co_spawn(io_, each(), [&left](std::exception_ptr e) {
                give_up(e);
                --left;
            });
        asio::steady_timer pause(io_);
        while (left > 0) {
            pause.expires_after(std::chrono::microseconds(100));
            co_await pause.async_wait(asio::use_awaitable);
        }
        co_return now() - began;
    }
    awaitable<void> add(std::string path, int adders, int times) {
        const zkasio::atomic_counter counter(zk_, std::move(path));
        const auto some = [&]() -> awaitable<void> {
            for (int i = 0; i < times; ++i) co_await counter.add(1);
        };
        const double took = co_await all(adders, some);
        const std::int64_t sum = co_await counter.get();
        say("added", took, static_cast<double>(sum));
    }
    awaitable<void> take_ids(std::string path, int takers, int times) {
        const zkasio::id_allocator ids(zk_, std::move(path), zkasio::id_options().block(100'000));
        const auto some = [&]() -> awaitable<void> {
            for (int i = 0; i < times; ++i)
                if (!ids.try_next()) co_await ids.next();
        };
        const double took = co_await all(takers, some);
        say("taken", took);
    }

    awaitable<void> fill(std::string path, int n) {
        const zkasio::work_queue queue(zk_, std::move(path));
        const double began = now();
        std::vector<std::string> some;
        for (int i = 0; i < n; ++i) some.push_back(std::to_string(i));
        co_await queue.put_all(std::move(some));
        say("filled", now() - began);
    }
    void consume(const std::string& path, int consumers) {
        consumed_.clear();
        for (int i = 0; i < consumers; ++i)
            asio::co_spawn(io_, kind_ == "take" ? take({zk_, path}) : work({zk_, path}),
                           asio::bind_cancellation_slot(consumers_.emplace_back().slot(), [](std::exception_ptr) {}));
    }
    awaitable<void> take(zkasio::work_queue queue) {
        for (;;) {
            std::string item = co_await queue.take();
            consumed_ += " " + item;
        }
    }
    awaitable<void> work(zkasio::work_queue queue) {
        for (;;) {
            const zkasio::delivery job = co_await queue.receive();
            consumed_ += " " + job.item();
            co_await job.done();
        }
    }
    void stop() {
        std::printf("consumed%s\n", consumed_.c_str());
        std::fflush(stdout);
        for (asio::cancellation_signal& s : consumers_) s.emit(asio::cancellation_type::terminal);
    }

    asio::io_context& io_;
    zkasio::client_options options_;
    zkasio::client zk_;
    std::string kind_, consumed_;
    std::deque<asio::cancellation_signal> consumers_;
    zkasio::leadership leader_;
    std::optional<zkasio::tree_cache> cache_;
    std::optional<zkasio::group_observer> group_;
    std::deque<zkasio::tree_cache> fleet_;
    std::vector<std::string> seen_;
    double before_ = 0, updates_ = 0, deltas_ = 0, looked_again_ = 0, at_end_ = 0, cpu_ = 0;
    std::size_t ended_ = 0;
    long written_ = 0;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    asio::io_context io{1};
    bench::worker worker(io, argv[1], std::atoi(argv[2]));
    asio::co_spawn(io, worker.run(), bench::give_up);
    io.run();
}
