// Processes that take ids and work on the items of a queue, and are killed at any moment.

#include "support/shared_notes.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <asio/posix/stream_descriptor.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr std::size_t most_ids = 1 << 20, items = 60;

// What the processes have in common.
struct noted_by_killed {
    std::array<std::atomic<std::uint8_t>, most_ids> given;  // by id: how often
    std::atomic<std::uint32_t> ids, beyond;
    std::array<std::atomic<std::uint32_t>, items> begun;  // by item: how often a process has begun to work on it
    std::atomic<std::uint32_t> done, refused;
    std::atomic<int> holding;  // the process that keeps an item until it is killed, and one more; 0: none
};

// A process that works once it is told to begin, until it is killed or told to end.
class worker_process {
public:
    using work = std::function<asio::awaitable<void>(client)>;

    // Before there is any thread. @param earlier whose pipes it must not keep open.
    worker_process(const std::string& servers, work what, const std::vector<std::unique_ptr<worker_process>>& earlier) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[1]);
            for (const auto& p : earlier) ::close(p->commands_);
            be(servers, ends[0], std::move(what));
        }
        ::close(ends[0]);
        commands_ = ends[1];
        ::fcntl(commands_, F_SETFD, FD_CLOEXEC);
    }
    worker_process(const worker_process&) = delete;
    worker_process& operator=(const worker_process&) = delete;
    ~worker_process() { kill(); }

    void begin() { REQUIRE(::write(commands_, "b", 1) == 1); }
    void kill() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        hang_up();
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
    // The process ends by itself. Its exit code, or -1.
    asio::awaitable<int> end() {
        hang_up();
        int status = 0;
        auto gone = [&]() -> asio::awaitable<bool> { co_return ::waitpid(pid_, &status, WNOHANG) == pid_; };
        co_await eventually(gone, 60s);
        pid_ = -1;
        co_return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    static asio::awaitable<void> until_told(client zk, int commands, work what) {
        const auto executor = co_await asio::this_coro::executor;
        running working(executor, what(zk));
        asio::posix::stream_descriptor pipe(executor, commands);
        char command = 0;
        const std::error_code ignored =
            co_await code_of(pipe.async_read_some(asio::buffer(&command, 1), asio::use_awaitable));
        static_cast<void>(ignored);  // the end of the pipe
        working.cancel();
        const std::error_code failed = co_await working.code();
        if (failed && failed != condition::cancelled) ::_exit(3);
        co_await zk.close();
    }
    [[noreturn]] static void be(const std::string& servers, int commands, work what) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        char begin = 0;
        if (::read(commands, &begin, 1) != 1) ::_exit(0);
        try {
            asio::io_context io;
            const client zk(io.get_executor(),
                            options(servers).session_timeout(paced(3s)).retry(retry_policy::forever()));
            asio::co_spawn(io, until_told(zk, commands, std::move(what)), [](std::exception_ptr e) {
                if (e) ::_exit(1);
            });
            io.run();
        } catch (...) {
            ::_exit(2);
        }
        ::_exit(0);
    }
    void hang_up() {
        if (commands_ >= 0) ::close(std::exchange(commands_, -1));
    }

    pid_t pid_ = -1;
    int commands_ = -1;
};

using workers = std::vector<std::unique_ptr<worker_process>>;

asio::awaitable<void> take_ids(client zk, noted_by_killed& all) {
    const id_allocator ids(zk, "/ids", id_options().block(16));
    for (;;) {
        const std::uint64_t id = co_await ids.next();
        if (id >= most_ids) {
            ++all.beyond;
            co_return;
        }
        ++all.given[id];
        ++all.ids;
    }
}

// The effect of an item is a node, which its done() creates: a second one would be refused.
asio::awaitable<void> work_on_items(client zk, noted_by_killed& all, int me, bool keeps_one) {
    const work_queue q(zk, "/q");
    for (int n = 0;; ++n) {
        delivery d = co_await q.receive();
        ++all.begun[static_cast<std::size_t>(std::stoi(d.item()))];
        if (keeps_one && n == 3) {
            all.holding = me + 1;
            co_await d.lost();
        }
        transaction effect;
        effect.create("/effects/" + d.item());
        try {
            co_await d.done(effect);
            ++all.done;
        } catch (const error& e) {
            if (e.code() == zk_errc::node_exists) ++all.refused;
            const bool may_be_lost = e.code() == errc::lock_lost || e.code() == errc::session_expired;
            if (!may_be_lost && e.code() != zk_errc::node_exists) throw;
        }
    }
}

std::size_t count_if_above(const std::array<std::atomic<std::uint32_t>, items>& numbers, std::uint32_t n) {
    std::size_t count = 0;
    for (const auto& number : numbers) count += number > n;
    return count;
}

}  // namespace

TEST_CASE("id_allocator: processes are killed while they take ids, and no id comes twice", "[clear]") {
    constexpr int kills = 20, at_once = 3;
    shared_notes<noted_by_killed> all;
    const std::string servers = first_server();
    workers processes;
    for (int i = 0; i < kills + at_once; ++i)
        processes.push_back(std::make_unique<worker_process>(
            servers, [&](client zk) { return take_ids(zk, *all); }, processes));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code ignored = co_await code_of(zk.remove("/ids"));
        CHECK((!ignored || ignored == zk_errc::no_node));
        for (int i = 0; i < at_once; ++i) processes[static_cast<std::size_t>(i)]->begin();
        for (int i = 0; i < kills; ++i) {
            const std::uint32_t before = all->ids;
            auto some_more = [&]() -> asio::awaitable<bool> { co_return all->ids > before + 100; };
            co_await eventually(some_more);
            processes[static_cast<std::size_t>(i)]->kill();
            processes[static_cast<std::size_t>(i + at_once)]->begin();
        }
        for (int i = kills; i < kills + at_once; ++i) {
            const int status = co_await processes[static_cast<std::size_t>(i)]->end();
            CHECK(status == 0);
        }
        co_await zk.remove("/ids");
    };
    with_client(body);
    std::size_t twice = 0;
    for (const auto& n : all->given) twice += n > 1;
    CHECK(twice == 0);
    CHECK(all->ids > 100 * kills);
    WARN(all->ids << " ids, " << all->beyond << " processes that have counted to the end");
}

TEST_CASE("work_queue: processes are killed between receive() and done(), and each item has its effect once",
          "[clear]") {
    constexpr int killed = 4, at_once = 3;
    shared_notes<noted_by_killed> all;
    const std::string servers = first_server();
    workers processes;
    for (int i = 0; i < killed + at_once; ++i)
        processes.push_back(std::make_unique<worker_process>(
            servers, [&, i](client zk) { return work_on_items(zk, *all, i, i < killed); }, processes));
    auto body = [&](client zk) -> asio::awaitable<void> {
        for (const char* path : {"/q", "/effects"}) {
            const std::error_code ignored = co_await code_of(zk.remove_recursive(path));
            CHECK((!ignored || ignored == zk_errc::no_node));
        }
        co_await zk.create("/effects");
        const work_queue q(zk, "/q");
        std::vector<std::string> numbers;
        for (std::size_t i = 0; i < items; ++i) numbers.push_back(std::to_string(i));
        co_await q.put_all(numbers);
        // One that will be killed after the other; then all that work to the end.
        for (int i = 0; i < killed; ++i) {
            processes[static_cast<std::size_t>(i)]->begin();
            auto holds = [&]() -> asio::awaitable<bool> { co_return all->holding == i + 1; };
            co_await eventually(holds);
            processes[static_cast<std::size_t>(i)]->kill();
        }
        for (int i = killed; i < killed + at_once; ++i) processes[static_cast<std::size_t>(i)]->begin();
        auto all_done = [&]() -> asio::awaitable<bool> { co_return all->done == items; };
        co_await eventually(all_done, 40s);
        for (int i = killed; i < killed + at_once; ++i) {
            const int status = co_await processes[static_cast<std::size_t>(i)]->end();
            CHECK(status == 0);
        }
        const node_children effects = co_await zk.children("/effects");
        CHECK(effects.names.size() == items);
        const work_queue_info left = co_await q.info();
        CHECK(left.waiting + left.claimed == 0);
        for (const char* path : {"/q", "/effects"}) co_await zk.remove_recursive(path);
    };
    with_client(body);
    CHECK(all->refused == 0);
    CHECK(count_if_above(all->begun, 0) == items);
    CHECK(count_if_above(all->begun, 1) >= killed);  // those that were being worked on
}
