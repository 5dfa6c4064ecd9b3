#include "acl_text.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "lock_choice.hpp"
#include "terminal.hpp"
#include "under_lock.hpp"

#include <zkasio/back_off.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <string>
#include <utility>

namespace zklock {
namespace {

zkasio::leader_election election_of(const session& s, const run_options& o) {
    zkasio::leader_election_options options;
    options.id(o.data.empty() ? who_we_are(o) : o.data);
    if (!o.acl.empty()) options.acl(parse_acl(o.acl));
    return zkasio::leader_election(s.zk, o.path, options);
}

// Until we lead. While there is no server it tries again: a candidate is a daemon.
asio::awaitable<zkasio::leadership> campaign(zkasio::leader_election election, session s) {
    zkasio::back_off pauses = zkasio::toolbox(s.zk).make_back_off();
    for (;;) {
        try {
            co_return co_await election.campaign(patiently(s));
        } catch (const zkasio::error& e) {
            if (e.code() != zkasio::errc::not_connected && e.code() != zkasio::condition::retryable) throw;
            say(e.what());
        }
        co_await pauses.pause();
    }
}

}  // namespace

asio::awaitable<int> elect(session s, run_options o) {
    const zkasio::leader_election election = election_of(s, o);
    co_await s.zk.connected();  // later outages are waited for; this may be a wrong name
    warn_if_open(s, o.path, o.acl);
    for (;;) {
        zkasio::leadership term = co_await campaign(election, s);
        if (s.verbose) say("elected, with token " + std::to_string(term.token().value()));
        const outcome end = co_await run_under(term.guard(), s, o);
        const bool over = !end.executed || (end.held && !o.requeue) || s.signals.end_requested();
        if (over) co_return end.exit_code;  // the end of the session resigns
        try {
            co_await term.resign();
        } catch (const zkasio::error& e) {
            say(e.what());  // the next term is another one anyway
        }
    }
}

}  // namespace zklock
