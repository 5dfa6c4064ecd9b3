#include <zkasio/client.hpp>

#include <zkasio/back_off.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/connection/server_list.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/testing_seam.hpp>
#include <zkasio/detail/handles/until_connected.hpp>
#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/path.hpp>

#include <asio/cancellation_state.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

using namespace detail;

namespace {

// @param last are tried when none of the others can be reached
asio::awaitable<void> use_servers(core_ptr core, std::string servers, std::vector<host_port> last = {}) {
    there(core, "set_servers");
    server_list list = parse_server_list(servers, "set_servers");
    if (!list.chroot.empty())
        throw error(errc::invalid_argument, "set_servers", list.chroot, "the chroot of a client cannot be changed");
    list.last = std::move(last);
    const auto done = std::make_shared<one_shot_state>();
    asio::dispatch(core->strand(), [core, list = std::move(list), done]() mutable {
        done->code = core->set_servers(std::move(list));
        done->done = true;
    });
    const wait_end failed = co_await wait_for(core, done);
    if (failed.code) throw error(failed.code, "set_servers");
}

// In the background, until the client is closed.
asio::awaitable<void> follow_ensemble(core_ptr c) {
    struct own_operations : operations {
        explicit own_operations(core_ptr c) : operations(std::move(c), nullptr) {}
    };
    const own_operations on(c);
    const std::vector<host_port> given = parse_server_list(c->options().servers(), "follow_ensemble").hosts;
    asio::steady_timer pause(c->strand());
    const auto wait = [&pause](std::chrono::duration<double> d) {
        pause.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(d));
        return pause.async_wait(asio::use_awaitable);
    };
    std::string followed, told;
    std::int64_t newest = 0;
    while (!c->sessions().is_final()) {
        const result<watched<node_data>> now = co_await as_result(on.config_and_watch());
        if (c->is_closing()) co_return;
        if (!now) {
            const bool soon = now.error().code() == condition::retryable;
            if (!soon && told != now.error().what()) {
                told = now.error().what();
                c->log().warn("follow_ensemble: the list of servers stays as it is: " + told);
            }
            const std::chrono::seconds pause_now(soon ? 1 : 60);
            co_await wait(pause_now);
            continue;
        }
        const std::string servers = servers_of_config(now->value.data);
        const bool is_older = now->value.stat.mzxid < newest;  // from a server that lags behind
        if (!servers.empty() && servers != followed && !is_older) {
            // Not all clients at once.
            if (newest > 0) co_await wait(jitter() * c->sessions().current()->lease.session_timeout());
            c->log().info("the ensemble's servers: " + servers);
            co_await use_servers(c, servers, given);
            followed = servers;
        }
        newest = std::max(newest, now->value.stat.mzxid);
        [[maybe_unused]] const auto over = co_await as_result(now->changes.changed());
    }
}

// See client_options::create_chroot(). The servers know the chroot's path only from a client without a chroot.
asio::awaitable<void> create_chroot(core_ptr c) {
    const std::string servers = c->server_names();
    const std::size_t end = servers.find('/');
    client_options plain = c->options();
    access::forget_session(plain);
    plain.servers(servers.substr(0, end)).observer(nullptr).follow_ensemble(false);
    const client zk = client_over(c->strand(), std::move(plain), c->backends());
    const create_options how = *c->options().chroot_to_create();
    std::exception_ptr failed;
    try {
        co_await zk.create_unless_exists(servers.substr(end), bytes(), how);
    } catch (...) {
        failed = std::current_exception();
    }
    // Also after a cancellation: a session that is not closed would stay until it expires.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    [[maybe_unused]] const auto closed = co_await as_result(zk.close());
    if (failed) std::rethrow_exception(failed);
}

// Until the chroot exists, for the server of this session as well. With a connection, for client_options::
// connection_timeout at most: then, and when the chroot cannot be created, this fails.
asio::awaitable<void> ensure_chroot(core_ptr c, session_record_ptr of) {
    back_off pauses = access::make<back_off>(c);
    boot_clock::time_point limit{};
    std::uint64_t connection = 0;  // that the limit is for
    bool behind_sync = false, created = false;
    for (;;) {
        const auto seen = std::make_shared<kept_reply>();
        c->look_at_chroot(of, seen, behind_sync);
        const wait_end end = co_await wait_for(c, answer_of(seen));
        const std::error_code found = end.code ? end.code : seen->reply.code;
        if (of->over || (found != zk_errc::no_node && found != condition::retryable)) co_return;
        if (found == zk_errc::no_node) {
            if (!std::exchange(behind_sync, true)) continue;  // this server may lag behind others
            if (const std::uint64_t now = c->requests().feeds().connection(); now != connection) {
                connection = now;
                limit = boot_clock::now() + c->options().connection_timeout();
            }
            try {
                co_await timeout(limit, create_chroot(c));
                if (!std::exchange(created, true)) continue;
            } catch (const error& e) {
                const bool was_cut = c->requests().feeds().connection() != connection ||
                                     c->sessions().state() != session_state::connected;
                if (e.code() != condition::retryable && !was_cut) throw;
            }
        }
        co_await pauses.pause();
    }
}

void log_missing_chroot(const core& c, const std::exception_ptr& failed) {
    std::string text = "create_chroot(): the chroot of " + c.server_names() + " is missing, and was not created";
    try {
        std::rethrow_exception(failed);
    } catch (const std::exception& e) {
        text += std::string(": ") + e.what();
    } catch (...) {  // nothing to add
    }
    c.log().error(text);
}

// In the background, until the client is closed. However a session's attempt ends, its requests go on.
asio::awaitable<void> keep_chroot(core_ptr c) {
    while (!c->is_closing() && !c->forked() && !c->sessions().is_final()) {
        const session_record_ptr of = c->sessions().current();
        std::exception_ptr failed;
        try {
            co_await ensure_chroot(c, of);
        } catch (...) {
            failed = std::current_exception();
        }
        if (c->is_closing()) co_return;
        c->chroot_is_known(*of);
        if (failed) log_missing_chroot(*c, failed);
        [[maybe_unused]] const wait_end over = co_await wait_for(c, of->ended);
    }
}

// Shared by all copies of a client. Its destructor, which runs with the last copy, closes the core.
struct handle {
    explicit handle(core_ptr c) : core(std::move(c)) {
        on_strand(core, [core = core] {
            core->start();
            if (core->options().follows_ensemble()) core->run_until_closed(follow_ensemble(core));
            if (core->creates_chroot()) core->run_until_closed(keep_chroot(core));
        });
    }
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    ~handle() {
        asio::post(core->strand(), [core = core] { core->begin_close(); });
    }
    core_ptr core;
};

asio::any_io_executor checked(asio::any_io_executor executor) {
    if (!executor) throw error(errc::invalid_argument, "client", {}, "the executor is empty");
    return executor;
}

}  // namespace

client::client(asio::any_io_executor executor, client_options options)
    : client(std::make_shared<core>(checked(std::move(executor)), std::move(options), &make_c_backend)) {}

client::client(std::shared_ptr<core> c)
    : operations(c, nullptr), last_handle_(std::make_shared<handle>(std::move(c))) {}

asio::any_io_executor client::get_executor() const { return there(core_, "get_executor")->strand(); }
const client_options& client::options() const { return there(core_, "options")->options(); }
session_state client::state() const noexcept { return core_ ? core_->state() : session_state::closed; }
client_stats client::stats() const { return there(core_, "stats")->stats(); }
session client::session_now() const {
    return access::make<session>(core_, there(core_, "session_now")->current_session_record(), root_);
}

client client::rooted(std::string_view path) const {
    const core_ptr& c = there(core_, "rooted", path);
    client view = *this;
    if (path.empty() || path == "/") return view;
    require_path("rooted", path);
    if (c->forked()) throw error(errc::forked, "rooted", path);
    if (!root_ && c->chroot_length() == 0 && belongs_to_servers(path))
        throw error(errc::invalid_path, "rooted", path, "/zookeeper belongs to the server");
    view.root_ = c->keep_root(whole_path(root_, std::string(path)));
    return view;
}

client client::unrooted() const {
    client whole = *this;
    whole.root_ = nullptr;
    return whole;
}

// The awaitables of the members may be awaited after the handle is destroyed: hence coroutines that own what they need.
namespace {

// A server checks the credentials of client_options::auth() after the handshake, when there is a session already. So a
// connection proves nothing: until_known() waits for the answer to one more request.
asio::awaitable<void> until_known(core_ptr c) {
    back_off pauses = access::make<back_off>(there(c, "connect"));
    const auto limit = boot_clock::now() + c->options().connection_timeout();
    for (;;) {
        co_await until_connected(c, "connect", std::string());
        if (c->options().auth().empty()) {
            co_await asio::post(asio::use_awaitable);
            co_return;
        }
        command look(exists_request{"/"});
        reply r;
        co_await perform(c, look, r);
        const bool again =
            r.code == errc::session_expired || (r.code == condition::retryable && r.code != errc::not_connected);
        if (again && boot_clock::now() >= limit)
            throw error(errc::not_connected, "connect", c->server_names(),
                        "no connection has lasted until a server had accepted the credentials");
        if (again) {
            co_await pauses.pause("connect", std::string());
            continue;
        }
        // no_node and no_auth are answers, too, and prove that the credentials were accepted: a server that refuses one
        // closes the connection instead.
        if (r.code != zk_errc::no_node && r.code != zk_errc::no_auth) throw_if_failed(r, "connect", c->server_names());
        co_return;
    }
}

asio::awaitable<session> next_session(core_ptr c, view_root root) {
    session now = co_await connected_session(c, root, "connect", std::string());
    co_await asio::post(asio::use_awaitable);
    co_return now;
}

asio::awaitable<session_credentials> read_credentials(core_ptr c) {
    for (;;) {
        auto found = std::make_shared<std::optional<session_credentials>>();
        const auto done = std::make_shared<one_shot_state>();
        co_await until_connected(c, "credentials", std::string());
        asio::dispatch(c->strand(), [c, found, done] {
            *found = c->sessions().share_credentials();
            done->done = true;
        });
        const wait_end over = co_await wait_for(c, done);
        if (over.code) throw error(over.code, "credentials");
        if ((*found)->id() != 0) co_return **found;  // id 0: the session has ended in between
    }
}

asio::awaitable<session_event> next_event(core_ptr c, std::shared_ptr<event_subscription> from) {
    there(c, "events");
    for (;;) {
        if (auto event = from->take()) co_return std::move(*event);
        const wait_end r = co_await wait_event(c, from);
        if (r.code) throw error(r.code, "events");
    }
}

asio::awaitable<void> authenticate(core_ptr core, std::string scheme, bytes credential) {
    there(core, "add_auth");
    add_auth_request auth{std::move(scheme), std::move(credential).take()};
    validate(auth, core->chroot_length());
    const std::string name = auth.scheme;
    command c(std::move(auth));
    reply r;
    co_await perform(core, c, r);
    throw_if_failed(r, "add_auth", name);
}

asio::awaitable<void> until_idle(core_ptr c) {
    const wait_end r = co_await wait_idle(there(c, "idle"));
    if (r.code) throw error(r.code, "idle");
}

asio::awaitable<close_result> closed(core_ptr c) {
    const wait_end r = co_await wait_closed(there(c, "close"));
    if (r.code) throw error(r.code, "close");
    co_return c->closed_how();
}

asio::awaitable<session_credentials> handed_over(core_ptr c) {
    back_off pauses = access::make<back_off>(there(c, "hand_over"));
    for (;;) {
        // If an earlier call has left the session and was cancelled, nobody knows the credentials yet.
        if (const std::optional<session_credentials> left = c->session_left()) {
            const wait_end r = co_await wait_closed(c);
            if (r.code) throw error(r.code, "hand_over");
            co_return *left;
        }
        co_await until_connected(c, "hand_over", std::string());
        const wait_end idle = co_await wait_idle(c);
        if (idle.code && c->session_left()) continue;  // by a call beside this one
        if (idle.code) throw error(idle.code, "hand_over");
        const auto begun = std::make_shared<bool>(false);
        const auto done = std::make_shared<one_shot_state>();
        asio::dispatch(c->strand(), [c, begun, done] {
            *begun = c->begin_hand_over();
            done->done = true;
        });
        const wait_end over = co_await wait_for(c, done);
        if (over.code && c->session_left()) continue;
        if (over.code) throw error(over.code, "hand_over");
        if (!*begun) co_await pauses.pause("hand_over", std::string());
    }
}

}  // namespace

asio::awaitable<void> client::connected() const { return until_known(core_); }
asio::awaitable<session> client::current_session() const { return next_session(core_, root_); }
asio::awaitable<session_credentials> client::credentials() const { return read_credentials(core_); }
asio::awaitable<session_event> session_events::next() const { return next_event(core_, subscription_); }
asio::awaitable<void> client::add_auth(std::string scheme, bytes credential) const {
    return authenticate(core_, std::move(scheme), std::move(credential));
}
asio::awaitable<void> client::set_servers(std::string servers) const { return use_servers(core_, std::move(servers)); }
asio::awaitable<void> client::idle() const { return until_idle(core_); }
asio::awaitable<close_result> client::close() const { return closed(core_); }
asio::awaitable<session_credentials> client::hand_over() const { return handed_over(core_); }

asio::awaitable<void> client::run_with_session(std::function<asio::awaitable<void>(const session&)> body, core_ptr c,
                                               const std::string* root) {
    if (!body) throw error(errc::invalid_argument, "with_session", {}, "the body is empty");
    const session s = co_await connected_session(c, root, "with_session", std::string());
    const session_hold hold = s.hold("");
    std::exception_ptr failed;
    std::function<asio::awaitable<void>()> bound = [&body, &s] { return body(s); };
    try {
        co_await hold.confirmed();
        co_await hold.run(std::move(bound));
    } catch (...) {
        failed = std::current_exception();
    }
    if (const loss_reason why = hold.reason(); why != loss_reason::none) {
        const errc code = why == loss_reason::closed   ? errc::client_closed
                          : why == loss_reason::forked ? errc::forked
                                                       : errc::session_expired;
        throw_with_body_failure(error(code, "with_session", {}, to_string(why)), failed);
    }
    if (failed) std::rethrow_exception(failed);
}

session_events client::events() const {
    auto s = std::make_shared<event_subscription>();
    on_strand(there(core_, "events"), [core = core_, s] { core->sessions().subscribe(s, core->state()); });
    return access::make<session_events>(core_, s);
}

}  // namespace zkasio
