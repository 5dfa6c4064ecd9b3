#include <zkasio/testing/detail/sim/sim_link.hpp>

#include <zkasio/detail/handles/testing_seam.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio::testing_detail {

using namespace detail;

namespace {

constexpr std::int64_t read_only_session = 0x7fff'0000;  // of each: no server of the quorum knows of it

permission needed_to_read(const request& r) {
    if (std::holds_alternative<exists_request>(r)) return permission::none;
    return std::holds_alternative<get_acl_request>(r) ? permission::read | permission::admin : permission::read;
}

std::string path_in(const request& r) { return std::string(path_of(r)); }

std::uint64_t listings_in(const request& r) {
    const auto* const several = std::get_if<multi_read_request>(&r);
    if (!several) return std::holds_alternative<children_request>(r) ? 1 : 0;
    std::uint64_t n = 0;
    for (const read_op& op : several->reads) n += std::holds_alternative<children_request>(op) ? 1 : 0;
    return n;
}

constexpr std::size_t header_bytes = 4 + 16;      // of a frame to a client: length, request number, zxid, error
constexpr std::size_t stat_bytes = 68;
constexpr std::size_t handshake_bytes = 4 + 37;

std::size_t bytes_of(const reply& r, const request& answers) {
    std::size_t all = header_bytes;
    const bool are_reads = std::holds_alternative<multi_read_request>(answers);
    for (const multi_result& one : r.results) {
        all += 9 + (one.path.empty() ? 0 : 4 + one.path.size()) + (one.stat ? stat_bytes : 0) + (are_reads ? 4 : 0) +
               one.data.size();
        for (const std::string& name : one.children) all += 4 + name.size();
    }
    if (r.code) return all;
    if (!r.path.empty()) all += 4 + r.path.size();
    if (r.stat.czxid != 0) all += stat_bytes;
    if (std::holds_alternative<get_request>(answers)) all += 4 + r.data.size();
    for (const std::string& name : r.children) all += 4 + name.size();
    for (const acl_entry& one : r.acl) all += 12 + one.who().scheme().size() + one.who().id().size();
    return all;
}

}  // namespace

std::string sim_link::next_request() const {
    if (requests_.empty()) return {};
    const packet& p = requests_.front();
    if (std::holds_alternative<goodbye>(p)) return "goodbye";
    const request& r = std::get<asked>(p).what;
    std::string text = std::string(operation_name(r)) + ' ' + path_in(r);
    if (const auto* m = std::get_if<remove_watch_request>(&r); m && m->kind == watch_kind::children) text += "/*";
    if (const auto* m = std::get_if<multi_request>(&r))
        for (const multi_op& op : m->ops)
            text += (std::holds_alternative<check_op>(op) ? " if " : " ") +
                    std::visit([](const auto& one) { return one.path; }, op);
    if (const auto* m = std::get_if<multi_read_request>(&r))
        for (const read_op& op : m->reads) text += ' ' + std::visit([](const auto& one) { return one.path; }, op);
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
    const bool silent = ensemble_.is_silent(client_), stopped = silent || ensemble_.is_stopped(client_);
    const bool lets_in = read_only_ ? ensemble_.has_read_only_server(client_) : !ensemble_.is_cut_off(client_);
    if (handshaking_ && !stopped && lets_in) steps.push_back({kind::connect, this, client_});
    if (!requests_.empty() && !silent) steps.push_back({kind::apply, this, client_});
    if (attached_ && !read_only_ && known_ < ensemble_.last_zxid()) steps.push_back({kind::catch_up, this, client_});
    if (!outgoing_.empty() && !stopped) steps.push_back({kind::deliver, this, client_});
}

void sim_link::connect() {
    handshaking_ = false;
    if (read_only_) {
        attached_ = true;
        who_.assign(1, acl_id("ip", "127.0.0.1"));
        server_session_ = read_only_session;
        view_.reset();
        known_ = 0;
        catch_up(ensemble_.read_only_known_.at(client_));
        send(up{server_session_});
        for (const add_auth_request& a : auth_)
            if (!authenticate(a)) return;
        return;
    }
    if (session_ != 0 && !ensemble_.alive(session_)) {
        send(expired{});
        return;
    }
    const bool renewed = session_ == 0;
    // A session has one connection: the newest.
    if (!renewed)
        for (sim_link* other : ensemble_.links_)
            if (other != this && other->attached_ && other->server_session_ == session_) other->drop(0, 0);
    attached_ = true;
    who_.assign(1, acl_id("ip", "127.0.0.1"));
    timeout_ = ensemble_.grant(asked_timeout_);
    server_session_ = renewed ? ensemble_.open_session(timeout_) : session_;
    if (!renewed) {
        ensemble_.sessions_[session_] = timeout_;
        ensemble_.on_resumed(session_);
    }
    const std::int64_t from = ensemble_.first_known(renewed, last_seen_);
    if (known_ > from) {
        view_.reset();
        known_ = 0;
    }
    catch_up(from);
    connected_at_ = known_;
    send(up{server_session_});
    if (ensemble_.is_hung_up(client_)) return drop(0, outgoing_.size(), true);
    for (const add_auth_request& a : auth_)
        if (!authenticate(a)) return;
}

// False: the server has closed the connection.
bool sim_link::authenticate(const add_auth_request& a) {
    if (a.scheme == "ip") return true;  // every connection has that identity, whatever is sent
    if (a.scheme == "digest") {
        const auto colon = a.credential.find(':');
        if (colon != std::string::npos)
            who_.push_back(digest_user(a.credential.substr(0, colon), a.credential.substr(colon + 1)));
        else  // accepted, as an identity that no "<user>:<password>" has
            who_.emplace_back("digest", a.credential + digest_id("", a.credential));
        return true;
    }
    attached_ = false;
    requests_.clear();
    armed_.clear();
    added_.clear();
    send(auth_refused{});
    return false;
}

// What is in the ensemble's log up to there.
sim_tree sim_link::tree_at(std::int64_t number) const {
    sim_tree tree;
    for (std::size_t i = 0; i < static_cast<std::size_t>(number); ++i)
        for (const sim_change& c : ensemble_.log_[i].changes) tree.apply(c, ensemble_.log_[i].zxid);
    return tree;
}

const sim_tree& sim_link::view() {
    if (!view_ && known_ < ensemble_.last_zxid()) view_.emplace(tree_at(known_));
    return view_ ? *view_ : ensemble_.tree_;
}

void sim_link::catch_up(std::int64_t until) {
    if (known_ >= until) return;
    if (!view_ && (ensemble_.lagging || until < ensemble_.last_zxid())) view_.emplace(tree_at(known_));
    while (known_ < until) {
        const sim_txn& txn = ensemble_.log_[static_cast<std::size_t>(known_++)];
        for (const sim_change& c : txn.changes) {
            if (view_) view_->apply(c, txn.zxid);
            fire(c);
        }
    }
}

void sim_link::deliver() {
    arrive(std::move(outgoing_.front()));
    outgoing_.pop_front();
}

void sim_link::apply() {
    packet p = std::move(requests_.front());
    requests_.pop_front();
    const auto* const a = std::get_if<asked>(&p);
    const auto* const c = a ? std::get_if<create_request>(&a->what) : nullptr;
    if (a && size_on_the_wire(a->what) > ensemble_.max_request) return drop(0, outgoing_.size(), true);
    if (c && c->mode == create_mode::container && !ensemble_.know_containers)
        return drop(0, outgoing_.size(), true, known_requests::opcode::create_container);
    serve(std::move(p));
}

void sim_link::drop(std::size_t applied, std::size_t delivered, bool by_server, std::int32_t at_request) {
    const std::size_t kept = std::min(delivered, outgoing_.size());
    for (; applied > 0 && !requests_.empty() && !std::holds_alternative<goodbye>(requests_.front()); --applied) apply();
    outgoing_.erase(outgoing_.begin() + static_cast<std::ptrdiff_t>(kept), outgoing_.end());
    attached_ = false;
    requests_.clear();
    armed_.clear();
    added_.clear();
    // A session of which its client has not learnt would expire some time later: end it now.
    const bool known =
        session_ == server_session_ ||
        std::any_of(outgoing_.begin(), outgoing_.end(), [](const arrival& a) { return std::holds_alternative<up>(a); });
    if (!known && !read_only_) ensemble_.end_session(server_session_);
    outgoing_.emplace_back(lost{by_server, at_request});
}

void sim_link::send(arrival a) {
    testing::traffic& c = counts();
    if (const auto* e = std::get_if<event>(&a)) {
        ++c.events;
        c.bytes_out += header_bytes + 12 + e->path.size();
    } else if (std::holds_alternative<up>(a) || std::holds_alternative<expired>(a)) {
        ++c.connections;
        c.bytes_out += handshake_bytes;
    }
    outgoing_.emplace_back(std::move(a));
}

void sim_link::serve(packet p) {
    ++counts().requests;
    if (auto* a = std::get_if<asked>(&p)) {
        counts().bytes_in += size_on_the_wire(a->what);
        counts().writes += is_write(a->what) ? 1 : 0;
        counts().listings += listings_in(a->what);
        if (const auto* auth = std::get_if<add_auth_request>(&a->what); auth && !auth->known && !authenticate(*auth))
            return;
        reply r;
        const bool is_known = knows(*a);
        if (is_known)
            r = serve(a->what);
        else
            r.code = zk_errc::unimplemented;
        const bool answers = is_known || ensemble_.are_zookeepers;
        counts().bytes_out += answers ? bytes_of(r, a->what) : 0;
        if (answers) send(answered{a->id, std::move(r), known_});
        const std::int32_t number = known_requests::number_of(a->what);
        if (!is_known && (ensemble_.hang_up_at_unknown || !answers))
            drop(0, outgoing_.size(), true, answers ? 0 : number);
        return;
    }
    ensemble_.end_session(server_session_);
    attached_ = false;
    armed_.clear();
    added_.clear();
    send(said_goodbye{});
}

void sim_link::fire(const sim_change& c) {
    if (armed_.empty() && added_.empty()) return;
    const std::string parent(parent_path(c.path));
    const std::int64_t czxid = c.node.stat.czxid;
    const acl& of_node = c.node.acl;
    switch (c.what) {
        case sim_change::kind::data_set:
            fire(node_event::data_changed, c.path, czxid, {watch_kind::data}, of_node);
            return;
        case sim_change::kind::acl_set: return;  // no watch reports it
        case sim_change::kind::created: fire(node_event::created, c.path, czxid, {watch_kind::data}, of_node); break;
        case sim_change::kind::removed:
            fire(node_event::removed, c.path, czxid, {watch_kind::data, watch_kind::children}, of_node);
            break;
    }
    const sim_node* above = (view_ ? *view_ : ensemble_.tree_).find(parent);
    fire(node_event::children_changed, parent, 0, {watch_kind::children}, above ? above->acl : acl());
}

// If the client may not read the node, no event is sent (since CVE-2024-23944), but the watch is used up.
void sim_link::fire(node_event e, const std::string& path, std::int64_t czxid,
                    std::initializer_list<watch_kind> kinds, const acl& entries) {
    bool armed = false;
    for (const watch_kind kind : kinds) {
        armed = armed_.erase({path, kind}) > 0 || armed;
        armed = armed || is_added(kind, path, e);
    }
    if (armed && permits(entries, permission::read, who_)) send(event{e, path, czxid, known_});
}

std::set<std::string> sim_link::added_paths() const {
    std::set<std::string> paths;
    for (const auto& [key, is_recursive] : added_) paths.insert(key.first);
    return paths;
}

// A recursive one tells of all nodes below as well, and never of children.
bool sim_link::is_added(watch_kind kind, const std::string& path, node_event e) const {
    if (const auto here = added_.find({path, kind}); here != added_.end() && !here->second) return true;
    if (e == node_event::children_changed) return false;
    for (std::string_view at = path; !at.empty(); at = parent_path(at))
        if (const auto it = added_.find({std::string(at), kind}); it != added_.end() && it->second) return true;
    return false;
}

bool sim_link::knows(const asked& a) const {
    if (is_own(a.what)) return ensemble_.know_multi_read;
    const bool is_removal = known_requests::number_of(a.what) == known_requests::opcode::remove_watches;
    const bool is_create = known_requests::number_of(a.what) == known_requests::opcode::create_with_stat;
    return (!is_removal || ensemble_.know_watch_removal) &&
           (!is_create || ensemble_.know_create2 || a.without_stat);
}

reply sim_link::read_own(const request& r) {
    reply result;
    const std::string path = path_in(r);
    if (const auto* m = std::get_if<multi_read_request>(&r)) {
        for (const read_op& op : m->reads) {
            const request step = std::visit([](const auto& one) { return request(one); }, op);
            reply one;
            one.code = ensemble_.refusal_of(path_in(step));
            if (!one.code) one = read(step);
            multi_result& told = result.results.emplace_back();
            told.code = one.code;
            if (one.code) continue;
            if (std::holds_alternative<get_request>(op)) {
                told.stat = one.stat;
                told.data = std::move(one.data);
            }
            told.children = std::move(one.children);
        }
    } else if (std::holds_alternative<who_am_i_request>(r)) {
        for (const acl_id& who : who_) {
            std::string id = who.id();
            if (who.scheme() == "digest") id.erase(std::min(id.find(':'), id.size()));  // shown without its password
            result.acl.emplace_back(permission::none, acl_id(who.scheme(), std::move(id)));
        }
    } else if (std::holds_alternative<ephemerals_request>(r)) {
        result.children = view().ephemerals_of(server_session_);
        std::erase_if(result.children, [&](const std::string& one) { return !one.starts_with(path); });
    } else if (std::holds_alternative<count_below_request>(r)) {
        result.code = read(get_request{path}).code;
        const std::string below = path == "/" ? path : path + '/';
        for (const auto& [other, of] : view().nodes())
            if (!result.code && other != path && other.starts_with(below)) ++result.stat.num_children;
    } else if (const auto* a = std::get_if<add_watch_request>(&r)) {
        for (const watch_kind kind : {watch_kind::data, watch_kind::children}) {
            added_[{path, kind}] = a->recursive;
            if (ensemble_.one_watch_at_a_path) armed_.erase({path, kind});
        }
    } else {
        std::size_t removed = 0;
        for (const watch_kind kind : {watch_kind::data, watch_kind::children})
            removed += added_.erase({path, kind}) + armed_.erase({path, kind});
        if (removed == 0) result.code = zk_errc::no_watcher;
    }
    return result;
}

reply sim_link::serve(const request& r) {
    reply result;
    const bool is_queued = !std::holds_alternative<add_auth_request>(r);  // credentials are not queued with requests
    if (is_queued && ensemble_.puts_off()) result.code = zk_errc::throttled;
    if (result.code) return result;
    if (!ensemble_.refused_.empty() && is_refused(r, result)) return result;
    if (read_only_ && (is_write(r) || std::holds_alternative<sync_request>(r))) {
        result.code = zk_errc::not_read_only;
        return result;
    }
    if (is_write(r)) return write(r);
    if (is_own(r)) return read_own(r);
    if (const auto* s = std::get_if<sync_request>(&r)) {
        catch_up(ensemble_.last_zxid());
        result.path = s->path;
    } else if (const auto* m = std::get_if<remove_watch_request>(&r)) {
        std::size_t removed = armed_.erase({m->path, m->kind});
        if (ensemble_.one_watch_at_a_path) removed += added_.erase({m->path, m->kind});
        if (removed == 0) result.code = zk_errc::no_watcher;
    } else if (!std::holds_alternative<add_auth_request>(r)) {
        result = read(r);
    }
    return result;
}

// A transaction fails as a whole, with the code of the first refused operation.
bool sim_link::is_refused(const request& r, reply& result) const {
    const auto* m = std::get_if<multi_request>(&r);
    if (!m) {
        result.code = ensemble_.refusal_of(path_in(r));
        return static_cast<bool>(result.code);
    }
    for (const multi_op& op : m->ops) {
        multi_result one;
        if (result.code)
            one.code = zk_errc::runtime_inconsistency;
        else
            one.code = result.code = ensemble_.refusal_of(std::visit([](const auto& of) { return of.path; }, op));
        result.results.push_back(std::move(one));
    }
    if (!result.code) result.results.clear();
    return static_cast<bool>(result.code);
}

reply sim_link::read(const request& r) {
    reply result;
    const std::string path = path_in(r);
    const sim_node* node = view().find(path);
    if (!node)
        result.code = zk_errc::no_node;
    else if (!permits(node->acl, needed_to_read(r), who_))
        result.code = zk_errc::no_auth;
    if (node && !result.code) {
        result.stat = node->stat;
        result.data = node->data;
    }
    if (std::holds_alternative<get_acl_request>(r)) {
        if (!result.code) result.acl = as_shown(node->acl, permits(node->acl, permission::admin, who_));
        return result;
    }
    if (result.code == zk_errc::no_auth) return result;
    const auto arm = [&](watch_kind kind) {
        armed_.insert({path, kind});
        if (ensemble_.one_watch_at_a_path) added_.erase({path, kind});
    };
    if (const auto* c = std::get_if<children_request>(&r)) {
        result.children = view().children_as_listed(path);
        if (c->watch && node) arm(watch_kind::children);
    } else if (const auto* g = std::get_if<get_request>(&r)) {
        if (g->watch && node) arm(watch_kind::data);
    } else if (const auto* e = std::get_if<exists_request>(&r)) {
        if (e->watch) arm(watch_kind::data);
    } else {
        result.code = zk_errc::unimplemented;
    }
    return result;
}

reply sim_link::write(const request& r) {
    reply result;
    sim_txn txn = ensemble_.begin(server_session_);
    const auto one = [&](const multi_op& op) {
        const multi_result done = ensemble_.tree_.perform(op, txn, &who_);
        result.code = done.code;
        if (done.code) return;
        result.path = done.path;
        if (done.stat) result.stat = *done.stat;
    };
    if (const auto* m = std::get_if<multi_request>(&r))
        result.code = ensemble_.tree_.perform(m->ops, txn, result.results, &who_);
    else if (const auto* c = std::get_if<create_request>(&r))
        one(*c);
    else if (const auto* s = std::get_if<set_request>(&r))
        one(*s);
    else if (const auto* d = std::get_if<remove_request>(&r))
        one(*d);
    else if (const auto* a = std::get_if<set_acl_request>(&r))
        result.code = ensemble_.tree_.set_acl(*a, txn, &who_).code;
    else
        result.code = zk_errc::unimplemented;
    ensemble_.commit(std::move(txn));
    catch_up(ensemble_.last_zxid());
    return result;
}

}  // namespace zkasio::testing_detail
