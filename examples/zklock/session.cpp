#include "session.hpp"

#include "credentials.hpp"
#include "exit_code.hpp"
#include "terminal.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/error.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/path.hpp>
#include <zkasio/printable.hpp>
#ifdef ZKLOCK_KERBEROS
#include <zkasio/kerberos/kerberos.hpp>
#endif
#ifdef ZKLOCK_SASL
#include <zkasio/sasl/digest_md5.hpp>
#endif
#ifdef ZKLOCK_TLS
#include <zkasio/tls/tls_options.hpp>
#endif

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/system_executor.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

namespace zklock {
namespace {

// Before --read-only looks for a server without a quorum, which servers are after some two seconds.
constexpr zkasio::client_options::duration patience_with_quorum{2000};

// With --read-only, and no server that has a quorum: a client of a server without one.
asio::awaitable<zkasio::client> client_to_read_with(zkasio::client own, const connection_options& how) {
    std::error_code failed;
    try {
        co_await own.connected();
    } catch (const zkasio::error& e) {
        failed = e.code();
    }
    if (failed != zkasio::errc::not_connected) co_return own;
    co_await own.close();
    co_return zkasio::client(own.get_executor(), client_options_of(how).read_only());
}

asio::awaitable<void> work(session s, const connection_options& how, const task& what, int& code) {
    auto body = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        tasks.spawn(s.signals.route(tasks));
        if (how.read_only) s.zk = co_await client_to_read_with(s.zk, how);
        code = co_await what(s);
        tasks.cancel();
    };
    std::exception_ptr failed;
    try {
        co_await zkasio::with_task_scope(body);
    } catch (...) {
        failed = std::current_exception();
    }
    const bool interrupted = s.signals.interrupted_by() != 0;
    if (failed && !interrupted) code = report(failed);
    if (s.zk.options().reads_only() && s.zk.stats().connections > 0)
        say("read from a server without a quorum: it may be old");
    const bool leaves_nodes = s.keeps_nodes && s.zk.session_now().id() != 0;  // 0: there was no session to hold any
    const zkasio::close_result end = co_await s.zk.close();
    if (end == zkasio::close_result::session_left_to_expire && leaves_nodes)
        say("no server could be told of our end: what we hold stays until the session times out");
}

int code_for(const std::error_code& c) {
    if (c == zkasio::errc::not_connected || c == zkasio::condition::session_ended ||
        c == zkasio::condition::retryable || c == zkasio::zk_errc::auth_failed)
        return exit_code::not_connected;
    if (c == zkasio::errc::invalid_path || c == zkasio::errc::invalid_argument || c == zkasio::errc::too_large)
        return exit_code::usage;
    if (c == zkasio::errc::lock_lost) return exit_code::lost;
    return c.category() == zkasio::zookeeper_category() || c.category() == zkasio::zkasio_category()
               ? exit_code::refused
               : exit_code::failed;
}

// What e.hint() says to a programmer, in terms of our options.
std::string hint_of(const zkasio::error& e) {
    const std::string path = e.path().empty() ? "PATH" : e.path();
    if (e.code() == zkasio::zk_errc::no_node && e.hint().find("parents()") != std::string::npos)
        return "the parent does not exist: create it, or say --parents";
    if (e.code() == zkasio::zk_errc::no_auth) {
        const bool parents = e.operation() == "create" || e.operation() == "remove";  // is for the parent to allow
        const std::string node = parents ? std::string(zkasio::parent_path(path)) : path;
        return "the ACL of " + node + " does not allow it to us: see `zklock acl " + node + "` and --auth-file";
    }
    if (e.code() == zkasio::zk_errc::invalid_acl)
        return "an unknown scheme, a malformed id, or creator and auth: without --auth-file";
    return e.hint();
}

// Throws zkasio::error, which names the file that cannot be used.
void use_tls([[maybe_unused]] zkasio::client_options& o, const connection_options& how) {
    if (!through_tls(how)) return;
#ifdef ZKLOCK_TLS
    o.tls(zkasio::tls_files().ca(how.tls_ca).certificate(how.tls_certificate, how.tls_key));
#else
    throw zkasio::error(zkasio::errc::invalid_argument, "tls", {}, "this zklock was built without zkasio::tls");
#endif
}

[[noreturn]] void refuse(const char* option, const char* why) {
    throw zkasio::error(zkasio::errc::invalid_argument, option, {}, why);
}

// Throws zkasio::error, or what password_in() does.
void use_sasl([[maybe_unused]] zkasio::client_options& o, const connection_options& how) {
    if (how.kerberos && !how.sasl_user.empty()) refuse("kerberos", "either --kerberos or --sasl-user");
    if (how.kerberos) {
#ifdef ZKLOCK_KERBEROS
        o.sasl(zkasio::kerberos(asio::system_executor()));
#else
        refuse("kerberos", "this zklock was built without zkasio::kerberos");
#endif
    }
    if (how.sasl_user.empty()) return;
    if (how.sasl_password_file.empty()) refuse("sasl", "--sasl-user needs --sasl-password-file");
#ifdef ZKLOCK_SASL
    o.sasl(zkasio::digest_md5(how.sasl_user, password_in(how.sasl_password_file)));
#else
    refuse("sasl", "this zklock was built without zkasio::sasl");
#endif
}

}  // namespace

zkasio::client_options client_options_of(const connection_options& how) {
    zkasio::client_options o(how.servers);
    o.session_timeout(how.session_timeout).connection_timeout(how.connect_timeout);
    for (const std::string& user : digest_credentials(how.auth_file)) o.auth("digest", user);
    use_sasl(o, how);
    use_tls(o, how);
    o.default_acl(zkasio::open_acl());  // said, so that the library does not warn: see warn_if_open()
    o.log(nullptr);
    if (how.verbose)
        o.log([](const zkasio::log_record& r) { say(std::string(to_string(r.level())) + ": " + r.text()); });
    return o;
}

int run_session(const connection_options& how, const task& what, bool keeps_nodes, watchdog* killer) {
    int code = exit_code::failed, signal = 0;
    {
        asio::io_context io(1);
        signal_router signals(io.get_executor());
        zkasio::client_options options = client_options_of(how);
        if (how.read_only) options.connection_timeout(std::min(options.connection_timeout(), patience_with_quorum));
        const zkasio::client zk(io, options);
        const session s{zk, signals, killer, keeps_nodes, how.verbose, !options.auth().empty() || options.sasl()};
        asio::co_spawn(io, work(s, how, what, code), [](std::exception_ptr failed) {
            if (failed) std::rethrow_exception(failed);
        });
        io.run();
        signal = signals.interrupted_by();
    }
    if (signal != 0) die_by(signal);
    return code;
}

void warn_if_open(const session& s, const std::string& path, const std::string& acl) {
    if (s.has_credentials && acl.empty())
        say(zkasio::printable(path) + ": nodes are open to everybody; --acl creator keeps them to these credentials, " +
            "and --acl open ends this warning");
}

int report(std::exception_ptr failed) noexcept {
    try {
        std::rethrow_exception(failed);
    } catch (const zkasio::error& e) {
        say(zkasio::error(e.code(), e.operation(), e.path(), hint_of(e), e.outcome_unknown()).what());
        return code_for(e.code());
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::broken_pipe) return exit_code::signalled + SIGPIPE;  // `zklock tree / | head`
        say(e.what());
    } catch (const std::exception& e) {
        say(e.what());
    }
    return exit_code::failed;
}

}  // namespace zklock
