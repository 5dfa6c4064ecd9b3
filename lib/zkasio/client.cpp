#include <zkasio/client.hpp>

#include <zkasio/detail/await.hpp>
#include <zkasio/detail/throw_error.hpp>
#include <zkasio/detail/validate.hpp>

#include <asio/post.hpp>

namespace zkasio {

using namespace detail;

namespace {

// Shared by all copies of a client: the last one to go closes.
struct handle {
    explicit handle(core_ptr c) : core(std::move(c)) {
        on_strand(core, [core = core] { core->start(); });
    }
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    ~handle() {
        try {
            asio::post(core->strand(), [core = core] { core->begin_close(); });
        } catch (...) {
        }
    }
    core_ptr core;
};

}  // namespace

client::client(asio::any_io_executor executor, client_options options)
    : client(std::make_shared<core>(std::move(executor), std::move(options), &make_c_backend)) {}

client::client(std::shared_ptr<core> c) : operations(c, nullptr), last_handle_(std::make_shared<handle>(std::move(c))) {}

asio::any_io_executor client::get_executor() const { return core_->strand(); }
const client_options& client::options() const noexcept { return core_->options(); }
session_state client::state() const noexcept { return core_->state(); }

asio::awaitable<void> client::connected() const {
    if (state() == session_state::connected) co_return;
    const reply r = co_await wait_connected(core_);
    throw_if_failed(r, "connect", core_->options().servers());
}

asio::awaitable<session> client::current_session() const {
    co_await connected();
    co_return session_now();
}

session client::session_now() const { return session(core_, core_->current_epoch()); }

asio::awaitable<session_credentials> client::credentials() const {
    auto found = std::make_shared<std::optional<session_credentials>>();
    const auto done = std::make_shared<waitable>();
    co_await connected();
    asio::dispatch(core_->strand(), [core = core_, found, done] {
        *found = core->credentials();
        done->done = true;
    });
    co_await wait_for(core_, done);
    co_return **found;
}

session_events client::events() const {
    auto s = std::make_shared<event_subscription>();
    on_strand(core_, [core = core_, s] { core->subscribe(s); });
    return {core_, s};
}

asio::awaitable<session_event> session_events::next() const {
    for (;;) {
        {
            const std::lock_guard lock(subscription_->mutex);
            if (!subscription_->queue.empty()) {
                session_event e = std::move(subscription_->queue.front());
                subscription_->queue.pop_front();
                co_return e;
            }
        }
        const reply r = co_await wait_event(core_, subscription_);
        if (r.code) throw error(r.code, "events");
    }
}

asio::awaitable<void> client::add_auth(std::string scheme, bytes credential) const {
    add_auth_request auth{std::move(scheme), std::move(credential).take()};
    validate(auth, core_->chroot_length());
    const std::string name = auth.scheme;
    command c;
    c.what = std::move(auth);
    const reply r = co_await perform(core_, std::move(c));
    throw_if_failed(r, "add_auth", name);
}

asio::awaitable<void> client::set_servers(std::string servers) const {
    server_list list = parse_server_list(servers, "set_servers");
    if (!list.chroot.empty())
        throw error(errc::invalid_argument, "set_servers", list.chroot, "the chroot of a client cannot be changed");
    const auto done = std::make_shared<waitable>();
    asio::dispatch(core_->strand(), [core = core_, list = std::move(list), done]() mutable {
        core->set_servers(std::move(list));
        done->done = true;
    });
    const wait_end failed = co_await wait_for(core_, done);
    if (failed.code) throw error(failed.code, "set_servers");
}

asio::awaitable<void> client::run_with_session(std::function<asio::awaitable<void>(session)> body) const {
    const session s = co_await current_session();
    const session_hold hold = s.hold("");
    std::exception_ptr failed;
    std::function<asio::awaitable<void>()> bound = [&body, &s] { return body(s); };
    try {
        co_await hold.confirmed();
        co_await hold.run(std::move(bound));
    } catch (...) {
        failed = std::current_exception();
    }
    if (const loss_reason why = hold.reason(); why != loss_reason::none)
        throw error(why == loss_reason::closed ? errc::client_closed : errc::session_expired, "with_session", {}, to_string(why));
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<close_result> client::close() const {
    const core_ptr c = core_;
    const reply r = co_await wait_closed(c);
    if (r.code) throw error(r.code, "close");
    co_return c->closed_how();
}

}  // namespace zkasio
