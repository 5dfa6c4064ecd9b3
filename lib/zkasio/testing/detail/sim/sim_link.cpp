#include <zkasio/testing/detail/sim/sim_link.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace zkasio::testing_detail {

using namespace detail;

sim_link::sim_link(sim_ensemble& ensemble, int client, backend_listener& listener)
    : ensemble_(ensemble), client_(client), listener_(listener), descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ensemble_.links_.push_back(this);
}

sim_link::~sim_link() {
    close();
    ::close(descriptor_);
    if (readable_) --ensemble_.readable_links_;
    std::erase(ensemble_.links_, this);
}

void sim_link::open(const open_params& p) {
    // A server answers a wrong password in the same way as an expired session.
    session_ = p.session_id != 0 && p.session_password != password ? no_session : p.session_id;
    read_only_ = p.read_only;
    chroot_ = p.chroot;
    auth_ = p.auth;
    requests_known_ = p.known;
    asked_timeout_ = ensemble_.session_timeout.count() > 0 ? ensemble_.session_timeout : p.session_timeout;
    timeout_ = ensemble_.grant(asked_timeout_);
    connects_next_ = ensemble_.is_hung_up(client_);
    if (!connects_next_) begin_connecting();
}

// Also right after a loss. No attempt fails, so that there are no pauses of the client, which are random and take time.
// Exception: if the server has hung up on purpose, the client pauses as it does with a real server.
void sim_link::begin_connecting() {
    state_ = state::connecting;
    ++connection_;
    handshaking_ = true;
}

interest sim_link::next_interest() {
    interest result;
    if (std::exchange(connects_next_, false) && !closed_) begin_connecting();
    if (state_ == state::none) return result;
    result.descriptor = descriptor_;
    result.connection = connection_;
    result.read = true;
    result.timeout = timeout_ / 3;
    return result;
}

void sim_link::arrive(arrival&& a) {
    arrived_.push_back(std::move(a));
    if (std::exchange(readable_, true)) return;
    ++ensemble_.readable_links_;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(descriptor_, &one, sizeof one);
}

drain_result sim_link::process(bool, bool) {
    if (std::exchange(readable_, false)) {
        --ensemble_.readable_links_;
        std::uint64_t ignored = 0;
        [[maybe_unused]] const auto n = ::read(descriptor_, &ignored, sizeof ignored);
    }
    while (!arrived_.empty()) {
        arrival a = std::move(arrived_.front());
        arrived_.pop_front();
        handle(std::move(a));
    }
    return drain_result::drained;
}

std::string sim_link::with_chroot(const std::string& path) const {
    return path == "/" && !chroot_.empty() ? chroot_ : chroot_ + path;
}

void sim_link::add_chroot(request& r) const {
    const auto one = [this](auto& of) {
        if constexpr (requires { of.path; }) of.path = with_chroot(of.path);
    };
    std::visit(one, r);
    if (auto* m = std::get_if<multi_request>(&r))
        for (multi_op& op : m->ops) std::visit(one, op);
    if (auto* m = std::get_if<multi_read_request>(&r))
        for (read_op& op : m->reads) std::visit(one, op);
}

void sim_link::strip_chroot(std::string& path) const {
    if (path.starts_with(chroot_)) path.erase(0, chroot_.size());
    if (path.empty()) path = "/";
}

std::error_code sim_link::submit(op_id id, const request& asked_for) {
    request r = asked_for;
    if (!chroot_.empty()) add_chroot(r);
    // As in the library, which asks a server only about watches that it knows.
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && !registered_.contains({m->path, m->kind}))
        return zk_errc::no_watcher;
    const std::int32_t number = known_requests::number_of(r);
    const bool is_unknown = number != 0 && requests_known_->lacks(current_server(), number, boot_clock::now());
    const bool without_stat = is_unknown && number == known_requests::opcode::create_with_stat;
    if (is_unknown && !without_stat) return zk_errc::unimplemented;
    if (const auto* a = std::get_if<add_auth_request>(&r); a && !a->known) auth_.push_back(*a);
    if (const auto* m = std::get_if<multi_request>(&r))
        for (const multi_op& op : m->ops)
            if (const auto* c = std::get_if<create_request>(&op);
                c && (c->mode == create_mode::container || has_ttl(c->mode)))
                return zk_errc::unimplemented;
    if (attached_) requests_.emplace_back(asked{id, r, without_stat});
    outstanding_.emplace_back(id, std::move(r));
    return {};
}

void sim_link::abort_connection() {
    drop(0, 0);
    while (!outgoing_.empty()) deliver();
    process(true, false);
}

void sim_link::forget_watch(const std::string& path, watch_kind kind) { registered_.erase({with_chroot(path), kind}); }

bool sim_link::send_goodbye() {
    if (state_ != state::connected || !attached_) return false;
    requests_.emplace_back(goodbye{});
    goodbye_sent_ = true;
    return true;
}

goodbye_result sim_link::answer_to_goodbye() {
    process(true, false);
    return goodbye_result_;
}

void sim_link::close() {
    if (std::exchange(closed_, true)) return;
    state_ = state::none;
    handshaking_ = attached_ = false;
    requests_.clear();
    outgoing_.clear();
    armed_.clear();
    added_.clear();
    fail_all(errc::client_closed);
}

void sim_link::fail_all(std::error_code code) {
    for (const auto& [id, what] : std::exchange(outstanding_, {})) {
        reply r;
        r.code = code;
        r.sent = true;
        listener_.on_reply(id, std::move(r));
    }
}

void sim_link::handle(arrival&& a) {
    if (auto* r = std::get_if<answered>(&a)) return handle(std::move(*r));
    if (auto* e = std::get_if<event>(&a)) return handle(std::move(*e));
    if (const auto* u = std::get_if<up>(&a)) {
        session_ = u->session;
        state_ = state::connected;
        requests_known_->greeted(current_server(), ensemble_.are_zookeepers);
        assert(registered_.empty() && "the client has made the library forget its watches");
        listener_.on_link(link_state::connected);
    } else if (std::holds_alternative<expired>(a)) {
        state_ = state::none;
        fail_all(errc::session_expired);
        listener_.on_link(link_state::expired);
    } else if (std::holds_alternative<auth_refused>(a)) {
        state_ = state::none;
        fail_all(zk_errc::auth_failed);
        listener_.on_link(link_state::auth_failed);
    } else if (const auto* l = std::get_if<lost>(&a)) {
        if (goodbye_sent_) {
            goodbye_result_ = goodbye_result::connection_lost;
            return;
        }
        const bool was_connected = state_ == state::connected;
        state_ = state::none;
        known_added_.clear();
        connects_next_ = l->by_server;
        if (l->at_request != 0) requests_known_->hung_up(current_server(), {l->at_request}, boot_clock::now());
        if (!connects_next_) begin_connecting();
        fail_all(zk_errc::connection_loss);
        if (was_connected) listener_.on_link(link_state::disconnected);
    } else {
        goodbye_result_ = goodbye_result::session_over;
    }
}

void sim_link::handle(answered&& a) {
    last_seen_ = std::max(last_seen_, a.zxid);
    const auto it =
        std::find_if(outstanding_.begin(), outstanding_.end(), [&](const auto& o) { return o.first == a.id; });
    const request what = std::move(it->second);
    outstanding_.erase(it);
    register_watch(what, a.what.code);
    const std::int32_t number = known_requests::number_of(what);
    const auto now = boot_clock::now();
    const bool stood_in = number != 0 && requests_known_->lacks(current_server(), number, now);
    if (number != 0 && !stood_in && !a.what.sent)
        requests_known_->answered(current_server(), number, a.what.code != zk_errc::unimplemented, now);
    if (std::holds_alternative<ephemerals_request>(what))
        std::erase_if(a.what.children, [this](std::string& path) {
            const bool is_below = path.starts_with(chroot_ + '/') || path == chroot_;
            if (is_below) strip_chroot(path);
            return !is_below;
        });
    if (!chroot_.empty()) {
        if (!a.what.path.empty()) strip_chroot(a.what.path);
        for (multi_result& one : a.what.results)
            if (!one.path.empty()) strip_chroot(one.path);
    }
    if (!goodbye_sent_) listener_.on_reply(a.id, std::move(a.what));
}

// Fact 18. The library keeps a list of its watches.
void sim_link::register_watch(const request& r, const std::error_code& code) {
    if (const auto* g = std::get_if<get_request>(&r); g && g->watch && !code)
        registered_.emplace(g->path, watch_kind::data);
    if (const auto* c = std::get_if<children_request>(&r); c && c->watch && !code)
        registered_.emplace(c->path, watch_kind::children);
    if (const auto* e = std::get_if<exists_request>(&r); e && e->watch && (!code || code == zk_errc::no_node))
        registered_.emplace(e->path, watch_kind::data);
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && !code) registered_.erase({m->path, m->kind});
    if (const auto* a = std::get_if<add_watch_request>(&r); a && !code) known_added_.insert(a->path);
    if (const auto* a = std::get_if<remove_added_watch_request>(&r); a && !code) known_added_.erase(a->path);
}

void sim_link::handle(event&& e) {
    if (!known_added_.empty() && !goodbye_sent_) {
        std::string path = e.path;
        strip_chroot(path);
        listener_.on_added_watch(e.what, path, ensemble_.one_watch_at_a_path ? 0 : e.zxid);
    }
    bool known = false, awaited = false;  // nobody awaits a watch whose removal the client has asked for
    const auto fires = [&](watch_kind kind) {
        if (registered_.erase({e.path, kind}) == 0) return;
        known = true;
        const auto leaves = [&](const auto& o) {
            const auto* m = std::get_if<remove_watch_request>(&o.second);
            return m && m->path == e.path && m->kind == kind;
        };
        awaited = awaited || std::none_of(outstanding_.begin(), outstanding_.end(), leaves);
    };
    if (e.what != node_event::children_changed) fires(watch_kind::data);
    if (e.what == node_event::children_changed || e.what == node_event::removed) fires(watch_kind::children);
    if (!known || goodbye_sent_) return;
    const bool told = awaited && e.what == node_event::removed && ensemble_.on_told_removed;
    if (told) ensemble_.on_told_removed(client_, e.path, e.czxid);
    strip_chroot(e.path);
    listener_.on_node_event(e.what, e.path);
}

}  // namespace zkasio::testing_detail
