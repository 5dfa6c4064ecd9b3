// The part of request_table that is about a read-only server, see read_only_link.

#include <zkasio/detail/requests/request_table.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace zkasio::detail {
namespace {

// Whether a read-only server answers the request.
bool is_plain_read(const request& r) {
    return std::holds_alternative<exists_request>(r) || std::holds_alternative<get_request>(r) ||
           std::holds_alternative<children_request>(r) || std::holds_alternative<get_acl_request>(r) ||
           std::holds_alternative<get_config_request>(r);
}

// A server without a quorum changes nothing, and closes all its connections when it has one: a watch would never fire.
request without_watch(request r) {
    const auto leave_out = [](auto& of) {
        if constexpr (requires { of.watch; }) of.watch = false;
    };
    std::visit(leave_out, r);
    return r;
}

}  // namespace

bool request_table::goes_to_read_only(const entry& e) const {
    if (!e.what || e.pinned || e.without_quorum != no_quorum::reads || !is_plain_read(*e.what)) return false;
    return !e.connection || e.connection == feeds_.connection();
}

bool request_table::is_refused_read_only(const entry& e) const {
    if (!e.what || e.pinned || e.until_certain || std::holds_alternative<internal_receiver>(e.to)) return false;
    if (link_.connected() || e.without_quorum == no_quorum::waits) return false;
    if (is_plain_read(*e.what)) return e.without_quorum == no_quorum::refuses;
    return !std::holds_alternative<add_auth_request>(*e.what);
}

// Here and not by the server: so it is certain that nothing was done.
void request_table::refuse_read_only(op_id id) {
    auto node = entries_.extract(id);
    reply r;
    r.code = zk_errc::not_read_only;
    r.data = owner_.read_only_server()->current_server() +
             " has no quorum, and only reads: wait for client::connected()";
    leave_room(node.mapped(), r);
    finish(std::move(node.mapped()), std::move(r), clock::now());
    drop(std::move(node));
}

void request_table::read_only_up() {
    std::vector<op_id> refused;
    queue_.for_each_normal([&](op_id id) {
        const auto it = entries_.find(id);
        if (it != entries_.end() && is_refused_read_only(it->second)) refused.push_back(id);
    });
    for (const op_id id : refused)
        if (entries_.contains(id)) refuse_read_only(id);
    synced_session_ = -1;  // of no session: the feeds may soon know more than a server of the next connection
    feeds_.connected_read_only();
    owner_.request_waits();
}

void request_table::read_only_down() {
    watches_.feed_reads_lost();
    feeds_.disconnected([](const std::string&, watch_kind) {});
}

void request_table::flush_read_only() {
    backend* const to = link_.connected() ? nullptr : owner_.read_only_server();
    if (!to || queue_.empty() || issued_ >= window) return;
    std::vector<op_id> reads;
    queue_.for_each_normal([&](op_id id) {
        const auto it = entries_.find(id);
        const bool room = issued_ + reads.size() < window;
        if (it != entries_.end() && room && goes_to_read_only(it->second)) reads.push_back(id);
    });
    if (reads.empty()) return;
    to->begin_batch();
    std::vector<op_id> sent;
    last_sent_ = clock::now();
    for (const op_id id : reads) {
        const auto it = entries_.find(id);
        if (it == entries_.end()) continue;  // ended by the failure of an earlier one
        entry& e = it->second;
        const watch_target target = own_watch_of(e);
        if (target.path && !watches_.begin(*target.path, target.kind, lasts(e))) {
            sent.push_back(id);
            fail(id, errc::too_many_watches);
            continue;
        }
        const std::error_code refused = to->submit(id, without_watch(*e.what));
        if (refused && target.path) registration_done(e, refused);
        if (refused == std::errc::resource_unavailable_try_again) break;
        sent.push_back(id);
        if (refused) {
            fail(id, refused);
            continue;
        }
        e.by_read_only = true;
        issue(e);
    }
    std::sort(sent.begin(), sent.end());
    queue_.sweep([&](op_id id) { return std::binary_search(sent.begin(), sent.end(), id); });
    std::erase_if(expiring_, [&](op_id id) { return std::binary_search(sent.begin(), sent.end(), id); });
    to->end_batch();
}

request_table::seen_node request_table::seen_in(const reply& r, watch_kind kind) {
    seen_node seen;
    seen.exists = !r.code;
    if (r.code) return seen;
    seen.czxid = r.stat.czxid;
    seen.zxid = kind == watch_kind::children ? r.stat.pzxid : r.stat.mzxid;
    return seen;
}

// The answer extends no lease, and says nothing of the servers of the session.
void request_table::answered_read_only(entry& e, const reply& r) {
    telemetry_.counters.bytes_received.add(size_of(r));
    if (!queue_.empty()) owner_.request_waits();
    const watch_target target = own_watch_of(e);
    if (!target.path) return;
    registration_done(e, r.code);
    const bool live = !r.code || (target.missing_node_counts && r.code == zk_errc::no_node);
    if (!live || is_abandoned(e)) return;
    const seen_node seen = seen_in(r, target.kind);
    const auto [at, is_new] = unset_watches_.try_emplace({*target.path, target.kind}, seen);
    if (!is_new && !(at->second == seen)) at->second = {false, -1, -1};  // another server: for one of the two it fires
}

// ------------------------------------------------------------------------------ watches, on the next connection

void request_table::look_at_unset_watches() {
    const auto all = std::exchange(unset_watches_, {});
    for (const auto& [where, seen] : all)
        if (watches_.wanted(where.first, where.second)) look_at(where.first, where.second, seen);
}

void request_table::look_at(const std::string& path, watch_kind kind, const seen_node& seen) {
    command c;
    switch (kind) {
        case watch_kind::data: c.what = exists_request{path, true}; break;
        case watch_kind::children: c.what = children_request{path, true}; break;
        case watch_kind::config: c.what = get_config_request{true}; break;
    }
    submit(std::move(c), [this, path, kind, seen](reply&& r) {
        if (r.code == condition::session_ended || r.code == errc::forked) return;
        if (r.code == condition::retryable) {
            unset_watches_.try_emplace({path, kind}, seen);
            return;
        }
        if (seen_in(r, kind) == seen && (!r.code || r.code == zk_errc::no_node)) return;  // nothing has changed
        using event = detail::node_event;
        const event what = r.code == zk_errc::no_node     ? event::removed
                           : !seen.exists                 ? event::created
                           : kind == watch_kind::children ? event::children_changed
                                                          : event::data_changed;
        for (const watch_ptr& w : watches_.fire(what, path)) waits_.fire(w->fired);
        const bool is_set = !r.code || (kind == watch_kind::data && r.code == zk_errc::no_node);
        if (is_set && watches_.left_by_feed(path, kind, feeds_.watches(path, kind)))
            send_watch_removal(path, watches_.server_kind(kind));
    });
}

}  // namespace zkasio::detail
