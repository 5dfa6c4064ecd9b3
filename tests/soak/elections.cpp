#include "worker.hpp"

#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>

#include <exception>
#include <memory>

namespace soak {
namespace {

using namespace std::chrono_literals;

const std::string name = "election";

// A term is a round under a lock, of which nobody is told that it is wanted.
awaitable<void> serve(worker& w, const zkasio::leadership& term) {
    round mine(w, name, "x");
    mine.granted(term.guard());
    co_await mine.hold(term.guard(), 300ms);
    mine.releasing();
}

awaitable<void> lead(worker& w) {
    const zkasio::leader_election election(w.zk, root + "/" + name);
    auto body = [&](zkasio::leadership& term) -> awaitable<void> { co_await serve(w, term); };
    while (!w.stopping) {
        co_await w.think(1s);
        try {
            co_await election.lead(body);
        } catch (const std::exception&) {
            w.log.note("bad 0 lead() has failed: " + outcome_of_failure());
        }
    }
}

awaitable<void> stand(worker& w) {
    zkasio::candidate me(w.zk, root + "/" + name);
    while (!w.stopping) {
        const zkasio::candidate_status now = co_await me.next();
        if (now.state == zkasio::candidate_state::ended) {
            w.log.note("bad 0 a candidate has ended");
            co_return;
        }
        if (const auto term = me.term()) {
            try {
                co_await serve(w, *term);
                co_await me.step_down();
            } catch (const std::exception&) {
            }
        }
    }
    co_await me.close();
}

}  // namespace

void start_elections(worker& w) {
    if (w.one_in(2)) w.start(lead(w));
    else w.start(stand(w));
}

}  // namespace soak
