#include "simulation/listing_checker.hpp"
#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/with_lock.hpp>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace revocation_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string lock_path = "/locks/revoked";

struct troubles {
    bool drops = false, expiries = false, operator_deletes = false;
};

/// Contenders hold a lock until they are asked to give it back, while others list the lock, and ask.
class revocation_scenario {
public:
    revocation_scenario(simulation& simulated, troubles t) : s(simulated), with_(t), listings_(lock_path) {
        s.ensemble.on_commit = [this](const sim_txn& txn) {
            if (txn.ends_session) sessions_end_ = true;
            if (txn.session == 0 && !txn.changes.empty()) nodes_are_deleted_ = true;
            listings_.committed(txn);
        };
        s.on_quiet = [this] {
            for (const auto& [id, token] : waiting_)
                if (listings_.stands(token) && listings_.asked_at(token))
                    throw violation(id + " was asked to give way, and does not know");
        };
    }
    ~revocation_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        as_election_ = s.chance(40);
        const std::size_t clients = 2 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        const auto any_client = [&] { return static_cast<int>(s.pick(clients)); };
        for (std::size_t n = 2 + s.pick(5); n > 0; --n, ++holding_)
            s.spawn(s.user_executor(), contender(any_client(), 1 + s.pick(3)));
        for (std::size_t n = 1 + s.pick(3); n > 0; --n, ++asking_) s.spawn(s.user_executor(), asker(any_client()));
        s.spawn(trouble());
        s.run();
        if (holding_ + asking_ > 0) throw violation("somebody has not ended");
        s.close();
    }

private:
    mutex lock_of(int client, std::string id) const {
        mutex_options how;
        how.data(std::move(id));
        if (as_election_) how.names(name_scheme::curator_latch());
        return {s.client_number(client), lock_path, how};
    }

    // --------------------------------------------------------------------------------------------------- contenders
    void is_asked(const std::string& id, fencing_token token) const {
        s.note(id, " is asked to give way");
        if (!listings_.asked_at(token.value())) throw violation(id + " gives way, and was not asked");
    }

    asio::awaitable<void> hold(int client, std::string id) {
        const mutex lock = lock_of(client, id);
        lock_guard guard = co_await lock.acquire();
        s.note(id, " holds");
        waiting_[id] = guard.token().value();
        co_await guard.revoke_requested();
        is_asked(id, guard.token());
        co_await guard.release();
    }

    asio::awaitable<void> work(std::string id, const lock_guard& guard) {
        s.note(id, " works");
        waiting_[id] = guard.token().value();
        asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        std::error_code woken;
        co_await never.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        waiting_.erase(id);
        if (guard.held()) is_asked(id, guard.token());
        throw error(asio::error::operation_aborted, "work");
    }

    // Fails with errc::revoked, or errc::lock_lost.
    asio::awaitable<void> work_under_lock(int client, std::string id) {
        const mutex lock = lock_of(client, id);
        std::function<asio::awaitable<void>(lock_guard&)> body = [&](lock_guard& guard) { return work(id, guard); };
        co_await lock.with_lock(body, revocation_policy::cancel_after(std::chrono::milliseconds(0)));
        throw violation(id + " has worked, and was not cancelled");
    }

    asio::awaitable<void> contender(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(40), client);
            const std::string id = std::to_string(client) + '.' + std::to_string(next_id_++);
            const bool works = s.chance(30);
            const running holds(s.user_executor(client), works ? work_under_lock(client, id) : hold(client, id));
            const std::exception_ptr failed = co_await holds.end();
            waiting_.erase(id);
            if (failed) expect(failed, id, works);
        }
        --holding_;
    }

    void expect(const std::exception_ptr& failed, const std::string& id, bool works) const {
        try {
            std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            if (works && e.code() == errc::revoked) return;
            const bool is_lost = e.code() == errc::lock_lost || e.code() == condition::session_ended;
            if ((sessions_end_ || nodes_are_deleted_) && is_lost) return;
            throw violation(id + " has failed: " + e.what());
        }
    }

    // ------------------------------------------------------------------------------------------------------ who ask
    asio::awaitable<void> list(int client, std::shared_ptr<std::vector<contender_info>> to) {
        const std::int64_t since = listings_.now();
        const bool knows_kind = s.chance(50);
        if (knows_kind) {
            const mutex lock = lock_of(client, {});
            *to = co_await lock.contenders();
        } else {
            const lock_listing all = co_await list_lock(s.client_number(client), lock_path);
            const auto kind = as_election_ ? lock_directory_kind::election : lock_directory_kind::mutex;
            if (!all.foreign.empty()) throw violation("a foreign node is listed");
            if (all.kind != kind && all.kind != lock_directory_kind::empty) throw violation("another kind is listed");
            *to = all.contenders;
        }
        listings_.listed(*to, since, s.ensemble.lagging);
    }

    asio::awaitable<void> ask(int client, contender_info c, holder_data data) {
        s.note("client ", std::to_string(client), " asks ", c.path, " to give way");
        co_await revoke(s.client_number(client), c.path, data);
        if (listings_.stands(c.token.value()) && !listings_.asked_at(c.token.value()))
            throw violation(c.path + " was asked to give way, and the request is lost");
    }

    // Requests that fail with a connection are made again in the next round.
    asio::awaitable<void> asker(int client) {
        while (holding_ > 0) {
            co_await s.pause(s.pick(40), client);
            const auto found = std::make_shared<std::vector<contender_info>>();
            const running lists(s.user_executor(client), list(client, found));
            std::exception_ptr failed = co_await lists.end();
            if (!failed && !found->empty()) {
                const contender_info& c = (*found)[s.chance(60) ? 0 : s.pick(found->size())];
                // The server of another client may not know that contender yet.
                const int who = s.chance(50) ? client : static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
                const holder_data data = s.chance(50) ? holder_data::replaced : holder_data::kept;
                const running asks(s.user_executor(who), ask(who, c, data));
                failed = co_await asks.end();
            }
            try {
                if (failed) std::rethrow_exception(failed);
            } catch (const std::system_error& e) {
                if (e.code() != condition::retryable && !(sessions_end_ && e.code() == condition::session_ended))
                    throw violation(std::string("a request to give way has failed: ") + e.what());
            }
        }
        --asking_;
    }

    // ------------------------------------------------------------------------------------------------------- faults
    asio::awaitable<void> trouble() {
        for (int n = 0; n < 30 && holding_ > 0; ++n) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(3);
            if (what == 0 && with_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && with_.expiries) s.ensemble.expire(victim);
            if (what == 2 && with_.operator_deletes && s.ensemble.tree().find(lock_path)) {
                const std::vector<std::string> names = s.ensemble.tree().children(lock_path);
                if (names.empty()) continue;
                const std::string path = lock_path + '/' + names[s.pick(names.size())];
                s.note("an operator deletes ", path);
                s.ensemble.operate(detail::remove_request{path, any_version});
            }
        }
    }

    simulation& s;
    const troubles with_;
    listing_checker listings_;
    std::map<std::string, std::int64_t> waiting_;  // who hold, and will give way when asked: by id, with the token
    std::size_t holding_ = 0, asking_ = 0;
    int next_id_ = 0;
    bool as_election_ = false, sessions_end_ = false, nodes_are_deleted_ = false;
};

void run_revocation(const std::string& name, troubles t) {
    run_seeds("revocation, " + name, 300, [&](simulation& s) { revocation_scenario(s, t).run(); });
}

}  // namespace

TEST_CASE("revocation, simulated: holders give way, and listings tell who holds", "[simulation]") {
    run_revocation("calm", {});
}

TEST_CASE("revocation, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_revocation("drops", t);
}

TEST_CASE("revocation, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_revocation("expiries", t);
}

TEST_CASE("revocation, simulated: an operator deletes nodes", "[simulation]") {
    troubles t;
    t.drops = t.operator_deletes = true;
    run_revocation("operator", t);
}

}  // namespace revocation_simulation_tests
