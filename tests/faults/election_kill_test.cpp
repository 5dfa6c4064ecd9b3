// Five processes with a hundred candidates each, whose leader is killed again and again.

#include "support/lock_checks.hpp"
#include "support/shared_notes.hpp"
#include "support/test_client.hpp"

#include <zkasio/election/leader_election.hpp>

#include <asio/posix/stream_descriptor.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr int processes = 5, candidates_each = 100, kills = 50;
constexpr int kill_every = 5;  // of the kills, those by SIGKILL: each takes a session timeout
constexpr int spare_processes = kills / kill_every;
const std::string election_path = "/election", record_path = "/record";

// What the processes have in common. Each token is noted when its leader learns that it leads.
struct noted {
    std::atomic<std::int64_t> newest;
    std::atomic<int> leader, terms, proofs, violations;  // `leader`: the number of the process
    std::array<std::atomic<std::int64_t>, 4 * kills> tokens;
};

// ------------------------------------------------------------------------------------------- a process of candidates

// Leads until it is over, and proves it all the time. A session that others close at the servers has ended before its
// client can know: only what the servers accept counts. Once somebody knows that he leads with a newer token, that must
// be nothing of ours any more.
asio::awaitable<void> lead_and_note(leader_election election, noted& all, int process) {
    auto term = [&](leadership& leader) -> asio::awaitable<void> {
        const std::int64_t mine = leader.token().value();
        if (all.newest.exchange(mine) >= mine) ++all.violations;
        all.leader = process;
        all.tokens[static_cast<std::size_t>(all.terms.load()) % all.tokens.size()] = mine;
        ++all.terms;
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (;;) {
            const bool another = all.newest.load() != mine;
            transaction proof;
            proof.set(record_path, std::to_string(mine));
            const std::error_code refused = co_await code_of(leader.commit(proof));
            if (!refused) ++(another ? all.violations : all.proofs);
            pause.expires_after(1ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    };
    co_await election.lead(term, lead_options().requeue());
}

// 'x': our session ends at the servers. The end of the pipe: the end.
asio::awaitable<void> obey(client zk, int commands, noted& all, int process) {
    const auto executor = co_await asio::this_coro::executor;
    std::vector<running> candidates;
    const leader_election election(zk, election_path);
    for (int i = 0; i < candidates_each; ++i) candidates.emplace_back(executor, lead_and_note(election, all, process));
    asio::posix::stream_descriptor pipe(executor, commands);
    for (;;) {
        char command = 0;
        std::size_t n = 0;
        try {
            n = co_await pipe.async_read_some(asio::buffer(&command, 1), asio::use_awaitable);
        } catch (const std::system_error&) {
        }
        if (n == 0) break;
        co_await expire_session(zk);
    }
    for (running& c : candidates) c.cancel();
    for (running& c : candidates) co_await c.code();
    co_await zk.close();
}

[[noreturn]] void be_candidates(const std::string& servers, int commands, noted& all, int process) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char begin = 0;
    if (::read(commands, &begin, 1) != 1) ::_exit(0);
    try {
        asio::io_context io;
        const client zk(io.get_executor(), options(servers).session_timeout(paced(4s)).retry(retry_policy::forever()));
        asio::co_spawn(io, obey(zk, commands, all, process), [](std::exception_ptr e) {
            if (e) ::_exit(1);
        });
        io.run();
    } catch (...) {
        ::_exit(2);
    }
    ::_exit(0);
}

// The parent's side of it.
class candidate_process {
public:
    // Before there is any thread. @param earlier whose pipes it must not keep open.
    candidate_process(const std::string& servers, noted& all, int number,
                      const std::vector<std::unique_ptr<candidate_process>>& earlier) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[1]);
            for (const auto& p : earlier) ::close(p->commands_);
            be_candidates(servers, ends[0], all, number);
        }
        ::close(ends[0]);
        commands_ = ends[1];
        ::fcntl(commands_, F_SETFD, FD_CLOEXEC);
    }
    candidate_process(const candidate_process&) = delete;
    candidate_process& operator=(const candidate_process&) = delete;
    ~candidate_process() { kill(); }

    bool ended() const { return pid_ < 0; }
    void begin() { tell('b'); }
    void expire() { tell('x'); }
    void kill() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        hang_up();
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
    // It ends by itself, with nothing left.
    asio::awaitable<int> end() {
        hang_up();
        int status = 0;
        auto gone = [&]() -> asio::awaitable<bool> { co_return ::waitpid(pid_, &status, WNOHANG) == pid_; };
        co_await eventually(gone, 60s);
        pid_ = -1;
        co_return status;
    }

private:
    void hang_up() {
        if (commands_ >= 0) ::close(std::exchange(commands_, -1));
    }
    void tell(char command) { REQUIRE(::write(commands_, &command, 1) == 1); }
    pid_t pid_ = -1;
    int commands_ = -1;
};

std::vector<std::unique_ptr<candidate_process>> all_processes(const std::string& servers, noted& all) {
    std::vector<std::unique_ptr<candidate_process>> made;
    for (int i = 0; i < processes + spare_processes; ++i)
        made.push_back(std::make_unique<candidate_process>(servers, all, i, made));
    return made;
}

asio::awaitable<void> keep_leaders(leader_observer observer, std::shared_ptr<std::vector<std::int64_t>> seen,
                                   std::shared_ptr<int> others) {
    for (;;) {
        const leader_view view = co_await observer.next();
        if (view.leader) seen->push_back(view.leader->token.value());
        else ++*others;
    }
}

}  // namespace

TEST_CASE(
    "election: of 500 candidates in five processes one leads at a time while the leader is killed 50 times",
    "[clear]") {
    test_server server;
    const shared_notes<noted> notes;
    auto all = all_processes(server.connect_string(), *notes);
    int started = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.create(record_path);
        for (; started < processes; ++started) all[static_cast<std::size_t>(started)]->begin();
        co_await until_queued(zk, election_path, processes * candidates_each);
        const auto seen = std::make_shared<std::vector<std::int64_t>>();
        const auto others = std::make_shared<int>(0);
        running observing(co_await asio::this_coro::executor,
                          keep_leaders(leader_election(zk, election_path).observe(), seen, others));
        for (int killed = 0;; ++killed) {
            // The leader knows that it leads, and we know it.
            auto elected = [&]() -> asio::awaitable<bool> {
                co_return notes->terms == killed + 1 && !seen->empty() && seen->back() == notes->newest;
            };
            co_await eventually(elected, 30s);
            if (killed == kills) break;
            candidate_process& leader = *all[static_cast<std::size_t>(notes->leader)];
            if (killed % kill_every == 0) {
                leader.kill();
                all[static_cast<std::size_t>(started++)]->begin();
            } else {
                leader.expire();
            }
        }
        CHECK(notes->violations == 0);
        CHECK(notes->proofs > kills);
        CHECK(*others == 0);
        REQUIRE(seen->size() == static_cast<std::size_t>(kills) + 1);
        for (std::size_t i = 0; i < seen->size(); ++i) CHECK((*seen)[i] == notes->tokens[i]);
        for (std::size_t i = 1; i < seen->size(); ++i) CHECK((*seen)[i] > (*seen)[i - 1]);
        observing.cancel();
        co_await observing.code();

        for (const auto& p : all) {
            if (p->ended()) continue;
            const int status = co_await p->end();
            CHECK(status == 0);
        }
        co_await until_queued(zk, election_path, 0);
    };
    with_client_for(400s, options(server.connect_string()).session_timeout(paced(10s)), body);
}
