#include "unit/support/fake_server.hpp"

#include <asio/redirect_error.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace zkasio::test {

using namespace detail;

/// One backend. Its "socket" is an eventfd, readable when there are events.
class fake_server::connection final : public backend {
public:
    connection(fake_server& server, backend_listener& listener) : server_(server), listener_(listener) {
        server_.current_ = this;
        ++server_.backends_alive;
    }
    ~connection() override {
        close();
        ::close(descriptor_);
        --server_.backends_alive;
        if (server_.current_ == this) server_.current_ = nullptr;
    }

    void open(const open_params& p) override {
        server_.opened.push_back(p);
        note("open");
        if (server_.failing_opens > 0) {
            --server_.failing_opens;
            throw error(errc::invalid_argument, "connect");
        }
        session_ = p.session_id != 0 ? p.session_id : 0;
        password_ = p.session_password;
    }
    bool has_socket() const override { return state_ != state::none; }
    bool handshake_sent() const override { return state_ == state::connecting; }

    interest next_interest() override {
        interest result;
        tell_of_loss();
        if (state_ == state::connected && std::exchange(server_.times_out, false)) {
            lose("no answer for too long");
            return result;
        }
        if (state_ == state::none && server_.reachable && !over_) {
            state_ = state::connecting;
            ++number_;
            if (!server_.silent) post([](connection& c) { c.connected(); }, server_.handshake);
        }
        if (state_ == state::none) {
            if (!over_) last_failure_ = "connection refused";
            return result;
        }
        result.descriptor = descriptor_;
        result.connection = number_;
        result.read = true;
        result.write = server_.wants_write;
        result.timeout = server_.tick;
        return result;
    }

    drain_result process(bool readable, bool writable) override {
        assert(!goodbye_sent_ && "only the answer to the goodbye may be asked for");
        return take_turn(readable, writable);
    }
    drain_result take_turn(bool, bool writable) {
        ++server_.turns;
        if (writable) server_.wants_write = false;
        std::uint64_t ignored = 0;
        [[maybe_unused]] const auto n = ::read(descriptor_, &ignored, sizeof ignored);
        const auto arrived = [this](boot_clock::time_point now) {
            return !inbox_.empty() && std::max(inbox_.front().arrives, server_.quiet_until) <= now;
        };
        while (arrived(boot_clock::now())) {
            const event e = std::move(inbox_.front().what);
            inbox_.pop_front();
            e(*this);
            if (server_.one_at_a_time_ && !inbox_.empty()) {
                server_.happened();
                return drain_result::more;
            }
        }
        server_.happened();
        return drain_result::drained;
    }

    std::error_code submit(op_id id, const request& r) override {
        if (state_ != state::connected) return std::make_error_code(std::errc::resource_unavailable_try_again);
        if (is_own_read(r)) {
            ++server_.own_reads;
            outstanding_.emplace_back(id, r);
            if (server_.answers_own_reads) {
                reply given;
                given.code = server_.own_reads_give;
                post([id, given](connection& c) { c.reply_to(id, given); }, server_.delay);
            }
            server_.happened();
            return {};
        }
        if (std::holds_alternative<add_watch_request>(r) && !server_.knows_added_watches) {  // as a server before 3.6, but for hanging up
            outstanding_.emplace_back(id, r);
            reply refused;
            refused.code = zk_errc::unimplemented;
            post([id, refused](connection& c) { c.reply_to(id, refused); }, server_.delay);
            return {};
        }
        const std::string_view path = path_of(r);
        std::string text(operation_name(r));
        if (!path.empty()) text += ' ' + std::string(path);
        server_.requests.push_back({id, r, boot_clock::now(), text});
        note(text);
        if (server_.refuse)
            if (const std::error_code code = server_.refuse(r)) return code;
        outstanding_.emplace_back(id, r);
        if (std::exchange(server_.send_fails, false)) {
            state_ = state::none;
            lost_ = true;
            return {};
        }
        if (auto answered = server_.answer(r)) {
            if (server_.nodes_are_ours && answered->stat.ephemeral_owner == 0)
                answered->stat.ephemeral_owner = session_;
            post([id, a = std::move(*answered)](connection& c) { c.reply_to(id, a); }, server_.delay);
        }
        return {};
    }

    bool is_settled() const override { return state_ == state::connected; }
    void begin_batch() override {
        batch_ = true;
        note("begin");
    }
    void end_batch() override {
        if (std::exchange(batch_, false)) note("end");
        tell_of_loss();
    }
    void abort_connection() override {
        note("abort");
        lose("aborted");
    }
    void set_servers(const std::vector<server_address>& servers) override {
        server_.server_lists.push_back(servers);
        note("set_servers");
    }
    void forget_watch(const std::string& path, watch_kind kind) override {
        server_.watches_.erase({path, kind});
        note("forget " + path);
    }

    std::int64_t session_id() const override { return session_; }
    std::string session_password() const override { return password_; }
    std::chrono::milliseconds session_timeout() const override { return server_.session_timeout; }
    std::string last_failure() const override { return last_failure_; }
    std::string current_server() const override { return "fake:2181"; }

    bool send_goodbye() override {
        if (!server_.can_send_goodbye || state_ != state::connected) return false;
        note("goodbye");
        goodbye_sent_ = true;
        if (server_.says_goodbye) post([](connection& c) { c.goodbye_result_ = goodbye_result::session_over; });
        return true;
    }
    goodbye_result answer_to_goodbye() override {
        take_turn(true, false);
        return goodbye_result_;
    }

    void close() override {
        if (closed_) return;
        closed_ = true;
        note("close");
        state_ = state::none;
        fail_all(errc::client_closed);
    }

    // ---------------------------------------------------------------------------------------------- events
    void post(event e, boot_clock::duration late = {}) {
        const auto arrives = boot_clock::now() + late;
        inbox_.push_back({inbox_.empty() ? arrives : std::max(arrives, inbox_.back().arrives), std::move(e)});
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto n = ::write(descriptor_, &one, sizeof one);
    }

    void connected() {
        if (state_ != state::connecting) return;
        state_ = state::connected;
        ++server_.connections;
        if (session_ == 0) {
            session_ = server_.next_session_++;
            password_ = "0123456789abcdef";
        }
        if (!server_.watches_.empty()) note("set_watches");
        listener_.on_link(link_state::connected);
    }

    void reply_to(op_id id, reply r) {
        const auto it =
            std::find_if(outstanding_.begin(), outstanding_.end(), [&](const auto& o) { return o.first == id; });
        if (it == outstanding_.end()) return;
        note_watch(it->second, r.code);
        outstanding_.erase(it);
        listener_.on_reply(id, std::move(r));
    }

    void fail_all(std::error_code code) {
        for (const auto& [id, what] : std::exchange(outstanding_, {})) listener_.on_reply(id, lost(code));
    }

    void tell_of_loss() {
        if (!std::exchange(lost_, false)) return;
        state_ = state::connected;
        lose("could not send");
    }

    void lose(std::string why) {
        if (state_ == state::none) return;
        if (goodbye_sent_) {
            goodbye_result_ = goodbye_result::connection_lost;
            return;
        }
        const bool was_connected = state_ == state::connected;
        state_ = state::none;
        last_failure_ = std::move(why);
        inbox_.clear();
        fail_all(zk_errc::connection_loss);
        if (was_connected) listener_.on_link(link_state::disconnected);
    }

    void end(link_state how, std::error_code code) {
        state_ = state::none;
        over_ = true;
        server_.watches_.clear();
        fail_all(code);
        listener_.on_link(how);
    }

    void fire(node_event e, const std::string& path) {
        bool watched = false;
        if (e != node_event::children_changed) watched = server_.watches_.erase({path, watch_kind::data}) > 0;
        if (e == node_event::children_changed || e == node_event::removed)
            watched = server_.watches_.erase({path, watch_kind::children}) > 0 || watched;
        if (watched) listener_.on_node_event(e, path);
    }

    std::vector<op_id> outstanding() const {
        std::vector<op_id> ids;
        for (const auto& o : outstanding_) ids.push_back(o.first);
        return ids;
    }

private:
    static bool is_own_read(const request& r) {
        const auto* e = std::get_if<exists_request>(&r);
        return e && e->path == "/" && !e->watch;
    }

    enum class state {
        none,
        connecting,
        connected
    };

    void note(std::string line) {
        server_.log.push_back(std::move(line));
        server_.happened();
    }

    // Fact 18.
    void note_watch(const request& r, std::error_code code) {
        if (const auto* g = std::get_if<get_request>(&r); g && g->watch && !code)
            server_.watches_.insert({g->path, watch_kind::data});
        if (const auto* c = std::get_if<children_request>(&r); c && c->watch && !code)
            server_.watches_.insert({c->path, watch_kind::children});
        if (const auto* e = std::get_if<exists_request>(&r); e && e->watch && (!code || code == zk_errc::no_node))
            server_.watches_.insert({e->path, watch_kind::data});
        if (const auto* c = std::get_if<get_config_request>(&r); c && c->watch && !code)
            server_.watches_.insert({"/zookeeper/config", watch_kind::data});
        if (const auto* m = std::get_if<remove_watch_request>(&r); m && !code)
            server_.watches_.erase({m->path, m->kind});
    }

    fake_server& server_;
    backend_listener& listener_;
    int descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct arrival {
        boot_clock::time_point arrives;
        event what;
    };
    std::deque<arrival> inbox_;
    std::list<std::pair<op_id, request>> outstanding_;
    state state_ = state::none;
    std::uint64_t number_ = 0;
    std::int64_t session_ = 0;
    std::string password_, last_failure_;
    bool over_ = false, lost_ = false, closed_ = false, goodbye_sent_ = false, batch_ = false;
    goodbye_result goodbye_result_ = goodbye_result::none_yet;
};

fake_server::fake_server() = default;
fake_server::~fake_server() = default;

backend_factory fake_server::factory() {
    return [this](backend_listener& listener) -> std::unique_ptr<backend> {
        return std::make_unique<connection>(*this, listener);
    };
}

std::vector<std::string> fake_server::texts() const {
    std::vector<std::string> result;
    for (const received& r : requests) result.push_back(r.text);
    return result;
}

std::size_t fake_server::count(const std::string& text) const {
    return static_cast<std::size_t>(
        std::count_if(requests.begin(), requests.end(), [&](const auto& r) { return r.text == text; }));
}

asio::awaitable<void> fake_server::something_happens() {
    const auto executor = co_await asio::this_coro::executor;
    const auto me = waiting_.insert(
        waiting_.end(), std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max()));
    const auto timer = *me;
    std::error_code woken;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void fake_server::happened() {
    for (const auto& timer : std::exchange(waiting_, {})) timer->cancel();
}

void fake_server::post(event e) {
    if (current_) current_->post(std::move(e));
}

void fake_server::reply_to(op_id id, reply r) {
    post([id, r = std::move(r)](connection& c) { c.reply_to(id, r); });
}
void fake_server::reply_to_all(std::error_code code) {
    post([code](connection& c) {
        for (const op_id id : c.outstanding()) c.reply_to(id, refusal(code));
    });
}
void fake_server::drop(std::string why) {
    post([why = std::move(why)](connection& c) { c.lose(why); });
}
void fake_server::expire() {
    post([](connection& c) { c.end(link_state::expired, errc::session_expired); });
}
void fake_server::refuse_auth() {
    post([](connection& c) { c.end(link_state::auth_failed, zk_errc::auth_failed); });
}
void fake_server::fire(node_event e, std::string path) {
    post([e, path = std::move(path)](connection& c) { c.fire(e, path); });
}

}  // namespace zkasio::test
