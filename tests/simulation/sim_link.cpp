#include "simulation/sim_link.hpp"

#include <zkasio/path.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace zkasio::test {

using namespace detail;

sim_link::sim_link(sim_ensemble& ensemble, int client, backend_listener& listener)
    : ensemble_(ensemble), client_(client), listener_(listener), descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ensemble_.links_.push_back(this);
}

sim_link::~sim_link() {
    close();
    ::close(descriptor_);
    std::erase(ensemble_.links_, this);
}

// ------------------------------------------------------------------------------------------------ the client's end

void sim_link::open(const open_params& p) {
    session_ = p.session_id;
    begin_connecting();
}

// Also right after a loss: that no attempt fails keeps the client's pauses, which are random and take time, out of
// this.
void sim_link::begin_connecting() {
    state_ = state::connecting;
    ++connection_;
    handshaking_ = true;
}

interest sim_link::next_interest() {
    interest result;
    if (state_ == state::none) return result;
    result.descriptor = descriptor_;
    result.connection = connection_;
    result.read = true;
    result.timeout = ensemble_.session_timeout / 3;
    return result;
}

void sim_link::kick() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(descriptor_, &one, sizeof one);
}

drain_result sim_link::process(bool, bool) {
    std::uint64_t ignored = 0;
    [[maybe_unused]] const auto n = ::read(descriptor_, &ignored, sizeof ignored);
    while (!arrived_.empty()) {
        arrival a = std::move(arrived_.front());
        arrived_.pop_front();
        handle(std::move(a));
    }
    return drain_result::drained;
}

std::error_code sim_link::submit(op_id id, const request& r) {
    // As the library: it asks a server only about watches that it knows.
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && !registered_.contains({m->path, m->kind}))
        return zk_errc::no_watcher;
    outstanding_.emplace_back(id, r);
    if (attached_) requests_.emplace_back(asked{id, r});
    return {};
}

void sim_link::abort_connection() {
    drop(0, 0);
    while (!outgoing_.empty()) deliver();
    process(true, false);
}

// The library sets its watches again when it hears of the connection: what it has forgotten by then is not among them.
void sim_link::forget_watch(const std::string& path, watch_kind kind) {
    registered_.erase({path, kind});
    if (state_ == state::connected) return;
    armed_.erase({path, kind});
    for (packet& p : requests_)
        if (auto* w = std::get_if<set_watches>(&p))
            std::erase_if(w->watches, [&](const auto& one) { return one.first == watch_key(path, kind); });
}

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
        listener_.on_link(link_state::connected);
    } else if (std::holds_alternative<expired>(a)) {
        state_ = state::none;
        fail_all(errc::session_expired);
        listener_.on_link(link_state::expired);
    } else if (std::holds_alternative<lost>(a)) {
        if (goodbye_sent_) {
            goodbye_result_ = goodbye_result::connection_lost;
            return;
        }
        const bool was_connected = state_ == state::connected;
        begin_connecting();
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
    if (!goodbye_sent_) listener_.on_reply(a.id, std::move(a.what));
}

// Fact 18. The library keeps its own list; true: set by exists() on a node that was not there.
void sim_link::register_watch(const request& r, const std::error_code& code) {
    if (const auto* g = std::get_if<get_request>(&r); g && g->watch && !code)
        registered_[{g->path, watch_kind::data}] = false;
    if (const auto* c = std::get_if<children_request>(&r); c && c->watch && !code)
        registered_[{c->path, watch_kind::children}] = false;
    if (const auto* e = std::get_if<exists_request>(&r); e && e->watch && (!code || code == zk_errc::no_node))
        registered_[{e->path, watch_kind::data}] = static_cast<bool>(code);
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && !code) registered_.erase({m->path, m->kind});
}

void sim_link::handle(event&& e) {
    bool known = false;
    if (e.what != node_event::children_changed) known = registered_.erase({e.path, watch_kind::data}) > 0;
    if (e.what == node_event::children_changed || e.what == node_event::removed)
        known = registered_.erase({e.path, watch_kind::children}) > 0 || known;
    if (!known || goodbye_sent_) return;
    if (e.what == node_event::removed && ensemble_.on_told_removed) ensemble_.on_told_removed(client_, e.path, e.czxid);
    listener_.on_node_event(e.what, e.path);
}

// ------------------------------------------------------------------------------------------------ the server's end

std::string sim_link::next_request() const {
    if (requests_.empty()) return {};
    const packet& p = requests_.front();
    if (std::holds_alternative<goodbye>(p)) return "goodbye";
    if (const auto* w = std::get_if<set_watches>(&p)) {
        std::string text = "set_watches";
        for (const auto& [key, missing] : w->watches) text += ' ' + name_of(key) + (missing ? "?" : "");
        return text;
    }
    const request& r = std::get<asked>(p).what;
    std::string text = std::string(operation_name(r)) + ' ' + std::string(path_of(r));
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && m->kind == watch_kind::children) text += "/*";
    if (const auto* m = std::get_if<multi_request>(&r))
        for (const multi_op& op : m->ops)
            text += (std::holds_alternative<check_op>(op) ? " if " : " ") +
                    std::visit([](const auto& one) { return one.path; }, op);
    return text;
}

std::string sim_link::next_answer() const {
    if (outgoing_.empty()) return {};
    const arrival& a = outgoing_.front();
    if (const auto* r = std::get_if<answered>(&a)) {
        const auto it =
            std::find_if(outstanding_.begin(), outstanding_.end(), [&](const auto& o) { return o.first == r->id; });
        const std::string what = it == outstanding_.end() ? "?" : std::string(operation_name(it->second));
        std::string text = what + ' ' + r->what.path + (r->what.code ? ' ' + r->what.code.message() : std::string());
        for (const std::string& name : r->what.children) text += ' ' + name;
        for (const multi_result& one : r->what.results) text += one.path.empty() ? "" : ' ' + one.path;
        return text;
    }
    if (const auto* e = std::get_if<event>(&a)) return "event " + e->path;
    if (std::holds_alternative<up>(a)) return "connected";
    if (std::holds_alternative<expired>(a)) return "expired";
    return std::holds_alternative<lost>(a) ? "connection lost" : "goodbye";
}

void sim_link::list_steps(std::vector<sim_ensemble::step>& steps) {
    using kind = sim_ensemble::step::kind;
    const bool stopped = ensemble_.is_stopped(client_);
    if (handshaking_ && !stopped && !ensemble_.is_cut_off(client_)) steps.push_back({kind::connect, this, client_});
    if (!requests_.empty()) steps.push_back({kind::apply, this, client_});
    if (attached_ && known_ < ensemble_.last_zxid()) steps.push_back({kind::catch_up, this, client_});
    if (!outgoing_.empty() && !stopped) steps.push_back({kind::deliver, this, client_});
}

void sim_link::connect() {
    handshaking_ = false;
    if (session_ != 0 && !ensemble_.alive(session_)) {
        outgoing_.emplace_back(expired{});
        return;
    }
    attached_ = true;
    const bool renewed = session_ == 0;
    server_session_ = renewed ? ensemble_.open_session() : session_;
    const std::int64_t from = ensemble_.first_known(renewed, last_seen_);
    if (known_ > from) {
        view_ = sim_tree();
        known_ = 0;
    }
    catch_up(from);
    connected_at_ = known_;
    outgoing_.emplace_back(up{server_session_});
    if (!registered_.empty()) requests_.emplace_back(set_watches{last_seen_, {registered_.begin(), registered_.end()}});
}

void sim_link::catch_up(std::int64_t until) {
    while (known_ < until) {
        const sim_txn& txn = ensemble_.log_[static_cast<std::size_t>(known_++)];
        for (const sim_change& c : txn.changes) {
            view_.apply(c, txn.zxid);
            fire(c);
        }
    }
}

void sim_link::deliver() {
    arrived_.push_back(std::move(outgoing_.front()));
    outgoing_.pop_front();
    kick();
}

void sim_link::apply() {
    packet p = std::move(requests_.front());
    requests_.pop_front();
    serve(std::move(p));
}

void sim_link::drop(std::size_t applied, std::size_t delivered) {
    const std::size_t kept = std::min(delivered, outgoing_.size());
    for (; applied > 0 && !requests_.empty() && !std::holds_alternative<goodbye>(requests_.front()); --applied) apply();
    outgoing_.erase(outgoing_.begin() + static_cast<std::ptrdiff_t>(kept), outgoing_.end());
    attached_ = false;
    requests_.clear();
    armed_.clear();
    // A session that its client has never heard of expires some time.
    const bool known =
        session_ == server_session_ ||
        std::any_of(outgoing_.begin(), outgoing_.end(), [](const arrival& a) { return std::holds_alternative<up>(a); });
    if (!known) ensemble_.end_session(server_session_);
    outgoing_.emplace_back(lost{});
}

void sim_link::serve(packet p) {
    if (const auto* w = std::get_if<set_watches>(&p)) return restore(*w);
    if (auto* a = std::get_if<asked>(&p)) {
        reply r = serve(a->what);
        outgoing_.emplace_back(answered{a->id, std::move(r), known_});
        return;
    }
    ensemble_.end_session(server_session_);
    attached_ = false;
    armed_.clear();
    outgoing_.emplace_back(said_goodbye{});
}

// As a server compares them with what has happened since the client's last answer.
void sim_link::restore(const set_watches& w) {
    for (const auto& [key, of_missing] : w.watches) {
        const auto& [path, kind] = key;
        const sim_node* node = view_.find(path);
        armed_.insert(key);
        if (of_missing) {
            if (node) fire(node_event::created, path, any_node, {kind});
        } else if (!node) {
            fire(node_event::removed, path, any_node, {kind});
        } else if (kind == watch_kind::data && node->stat.mzxid > w.since) {
            fire(node_event::data_changed, path, any_node, {kind});
        } else if (kind == watch_kind::children && node->stat.pzxid > w.since) {
            fire(node_event::children_changed, path, any_node, {kind});
        }
    }
}

void sim_link::fire(const sim_change& c) {
    if (armed_.empty()) return;
    const std::string parent(parent_path(c.path));
    const std::int64_t czxid = c.node.stat.czxid;
    switch (c.what) {
        case sim_change::kind::data_set: fire(node_event::data_changed, c.path, czxid, {watch_kind::data}); return;
        case sim_change::kind::created: fire(node_event::created, c.path, czxid, {watch_kind::data}); break;
        case sim_change::kind::removed:
            fire(node_event::removed, c.path, czxid, {watch_kind::data, watch_kind::children});
            break;
    }
    fire(node_event::children_changed, parent, 0, {watch_kind::children});
}

void sim_link::fire(node_event e, const std::string& path, std::int64_t czxid,
                    std::initializer_list<watch_kind> kinds) {
    bool armed = false;
    for (const watch_kind kind : kinds) armed = armed_.erase({path, kind}) > 0 || armed;
    if (armed) outgoing_.emplace_back(event{e, path, czxid});
}

reply sim_link::serve(const request& r) {
    reply result;
    if (ensemble_.puts_off()) result.code = zk_errc::throttled;
    if (result.code) return result;
    if (is_write(r)) return write(r);
    if (const auto* s = std::get_if<sync_request>(&r)) {
        catch_up(ensemble_.last_zxid());
        result.path = s->path;
    } else if (const auto* m = std::get_if<remove_watch_request>(&r)) {
        if (armed_.erase({m->path, m->kind}) == 0) result.code = zk_errc::no_watcher;
    } else if (!std::holds_alternative<add_auth_request>(r)) {
        result = read(r);
    }
    return result;
}

reply sim_link::read(const request& r) {
    reply result;
    const std::string path(path_of(r));
    const sim_node* node = view_.find(path);
    if (node) {
        result.stat = node->stat;
        result.data = node->data;
    } else {
        result.code = zk_errc::no_node;
    }
    if (const auto* c = std::get_if<children_request>(&r)) {
        result.children = view_.children(path);
        if (c->watch && node) armed_.insert({path, watch_kind::children});
    } else if (const auto* g = std::get_if<get_request>(&r)) {
        if (g->watch && node) armed_.insert({path, watch_kind::data});
    } else if (const auto* e = std::get_if<exists_request>(&r)) {
        if (e->watch) armed_.insert({path, watch_kind::data});
    } else {
        result.code = zk_errc::unimplemented;
    }
    return result;
}

reply sim_link::write(const request& r) {
    reply result;
    sim_txn txn = ensemble_.begin(server_session_);
    const auto one = [&](const multi_op& op) {
        multi_result done = ensemble_.tree_.perform(op, txn);
        result.code = done.code;
        if (done.code) return;
        result.path = done.path;
        if (done.stat) result.stat = *done.stat;
    };
    if (const auto* m = std::get_if<multi_request>(&r))
        result.code = ensemble_.tree_.perform(m->ops, txn, result.results);
    else if (const auto* c = std::get_if<create_request>(&r))
        one(*c);
    else if (const auto* s = std::get_if<set_request>(&r))
        one(*s);
    else if (const auto* d = std::get_if<remove_request>(&r))
        one(*d);
    else
        result.code = zk_errc::unimplemented;
    ensemble_.commit(std::move(txn));
    catch_up(ensemble_.last_zxid());
    return result;
}

}  // namespace zkasio::test
