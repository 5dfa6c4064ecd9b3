#include "under_lock.hpp"

#include "child_process.hpp"
#include "credentials.hpp"
#include "exit_code.hpp"
#include "supervise.hpp"
#include "terminal.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zklock {
namespace {

command command_under(const zkasio::lock_guard& guard, const run_options& o) {
    command c;
    c.arguments = o.command;
    c.alone = o.close;
    c.environment = {{"ZKLOCK_TOKEN", std::to_string(guard.token().value())},
                     {"ZKLOCK_PATH", o.path},
                     {"ZKLOCK_NODE", guard.path()}};
    c.withheld = {auth_variable};
    return c;
}

supervision supervision_of(const session& s, const run_options& o) {
    supervision how;
    how.loss = o.loss;
    how.revoke = o.revoke;
    how.grace = o.grace;
    how.session_timeout = s.zk.session_now().timeout();
    how.killer = o.loss == on_loss::warn ? nullptr : s.killer;
    return how;
}

}  // namespace

asio::awaitable<outcome> run_under(const zkasio::lock_guard& guard, session s, run_options o) {
    outcome result;
    try {
        const verdict v = co_await supervise(guard, command_under(guard, o), supervision_of(s, o), s.signals);
        result.held = v.held;
        result.exit_code = exit_code_of(v.wait_status);
        if (v.unguarded) result.exit_code = exit_code::failed;
        if (!v.held && o.loss != on_loss::warn) result.exit_code = exit_code::lost;
    } catch (const std::system_error& e) {
        if (e.code().category() != std::generic_category()) throw;
        say(e.what());
        result.executed = false;
        result.exit_code = e.code().value() == ENOENT ? exit_code::not_found : exit_code::cannot_execute;
    }
    co_return result;
}

zkasio::acquire_options patiently(const session& s) {
    zkasio::acquire_options how;
    how.survive_expiry();
    auto tell = [](const zkasio::queue_position& p) {
        if (p.ahead > 0) say("waiting behind " + std::to_string(p.ahead));
    };
    if (s.verbose) how.on_position(std::move(tell));
    return how;
}

}  // namespace zklock
