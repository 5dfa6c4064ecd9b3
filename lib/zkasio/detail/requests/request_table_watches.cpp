// The part of request_table that is about watches: which watches are set, and how unneeded watches are removed.

#include <zkasio/detail/requests/request_table.hpp>

#include <utility>

namespace zkasio::detail {

// The watch that a request sets for a waiter. The watches of node_feeds are not counted here.
watch_target request_table::own_watch_of(const entry& e) {
    return e.connection && !e.sets_again ? watch_target() : watch_of(*e.what);
}

void request_table::registration_done(const entry& e, const reply& r) {
    const watch_target target = watch_of(*e.what);
    const bool live = !r.code || (target.missing_node_counts && r.code == zk_errc::no_node);
    // A refusal tells the waiters for whom this request sets the watch again: they have to look for themselves.
    const bool answered = !r.sent && r.code != condition::retryable && r.code != condition::session_ended;
    std::optional<seen_state> seen;
    if (live || (e.sets_again && answered)) seen = seen_in(r, target.kind);
    const bool unneeded =
        watches_.finish(*target.path, target.kind, live, is_abandoned(e) ? nullptr : e.watch, seen);
    // First the waiters: one that asks again at once keeps the watch, see confirm_watch_removal().
    for (const watch_ptr& w : watches_.take_changed()) waits_.fire(w->fired);
    if (unneeded) send_watch_removal(*target.path, watches_.server_kind(target.kind));
}

bool request_table::confirm_watch_removal(const std::string& path, watch_kind kind) {
    return watches_.confirm_removal(path, kind, feeds_.watches(path, kind));
}

// A removal that a busy server refuses is sent again, see repeats(). A removal that is refused for good is not: the
// watch stays until another waiter has had and left it, or the connection ends.
void request_table::send_watch_removal(const std::string& path, watch_kind kind) {
    if (owner_.is_closing()) {  // the watch ends with the session
        watches_.removed(path, kind, true);
        return;
    }
    if (!link_.connected()) {  // the watch was a feed's, and has gone with the connection
        forget_watch(path, kind);
        watches_.removed(path, kind, true);
        return;
    }
    command c;
    c.what = remove_watch_request{path, kind};
    c.pinned = owner_.current_session();
    submit(std::move(c), [this, path, kind](reply&& r) {
        if (r.code == condition::session_ended) return;
        const bool refused = r.code && r.code != zk_errc::no_watcher && !r.sent;
        if (refused && !owner_.is_closing()) return watches_.left_standing(path, kind);
        if (watches_.removed(path, kind, refused || !r.sent)) send_watch_removal(path, kind);
    });
}

void request_table::leave_watch(const watch_ptr& w) {
    if (watches_.leave(*w)) send_watch_removal(w->path, watches_.server_kind(w->kind));
}

void request_table::node_event(detail::node_event e, std::string_view path) {
    telemetry_.counters.watch_events.add();
    ahead_of_answers_ = true;
    if (e == detail::node_event::removed) {
        ephemerals_.heard_gone(path);
        tell_room();
    }
    for (const watch_ptr& w : watches_.fire(e, path)) waits_.fire(w->fired);
    feeds_.changed(static_cast<node_change>(e), path);
}

void request_table::end_watches(std::error_code code) {
    for (const watch_ptr& w : watches_.clear()) waits_.fire(w->fired, code);
}

// ------------------------------------------------------------------------------------------ watches of a connection

void request_table::add_feed(const feed_ptr& f) {
    const std::error_code refused = owner_.refusal(nullptr);
    if (!refused) feeds_.add(f);
    owner_.later([this, f, refused] {
        if (refused)
            feeds_.refuse(f, refused);
        else
            feeds_.tell(f);
    });
}

void request_table::read_for(const feed_ptr& to, node_read what, std::string path) {
    if (!link_.connected()) return;
    command c;
    switch (what) {
        case node_read::data: c.what = get_request{path, true}; break;
        case node_read::stat: c.what = exists_request{path, true}; break;
        case node_read::children: c.what = children_request{path, true}; break;
    }
    c.connection = feeds_.connection();
    watches_.feed_reads();
    const op_id id = submit(std::move(c), [this, to, what, path = std::move(path)](reply&& r) {
        if (r.code == condition::session_ended || r.code == errc::forked) return;
        const std::error_code code = r.code;
        feeds_.answered(to, what, path, code, {std::move(r.data), r.stat, std::move(r.children)});
        // A refused read has set no watch: is the watch that was kept for its sake still needed?
        if (watches_.feed_answered(path, kind_of(what)) && code) leave_feed_watch(what, path);
    });
    if (const auto it = entries_.find(id); it != entries_.end() && it->second.is_late) late_reads_.emplace(id, to);
}

// The read has failed with an unknown outcome. Usually its connection is gone, which the link reports right afterwards:
// then the feed does not get the answer. But servers give such answers, too: then the feed gets it.
void request_table::finish_if_connected(entry&& e, reply&& r) {
    if (r.code == condition::session_ended) return;
    auto answer = std::make_shared<reply>(std::move(r));
    owner_.later([this, connection = e.connection, tell = std::get<internal_receiver>(std::move(e.to)),
                  answer = std::move(answer)] {
        if (connection == feeds_.connection()) tell(std::move(*answer));
    });
}

void request_table::leave_feed_watch(node_read what, const std::string& path) {
    const watch_kind kind = kind_of(what);
    if (watches_.left_by_feed(path, kind, feeds_.watches(path, kind))) send_watch_removal(path, kind);
}

// Drops the removals that wait to be sent: on the next connection, such a removal would remove another watch than it
// was meant for.
void request_table::drop_queued_removals() {
    std::vector<op_id> queued;
    const auto look = [&](op_id id) {
        const auto it = entries_.find(id);
        if (it != entries_.end() && it->second.what && std::holds_alternative<remove_watch_request>(*it->second.what))
            queued.push_back(id);
    };
    queue_.for_each_normal(look);
    queue_.for_each_again(look);
    for (const op_id id : queued) {
        drop(entries_.extract(id));
        queue_.drop_again(id);
    }
}

// The watch has gone with its connection. The library would set all its watches again, in one request (fact 23).
void request_table::forget_watch(const std::string& path, watch_kind kind) {
    if (link_.is_open()) link_.backend().forget_watch(path, kind);
}

// The servers of a new session may lag behind those of the old one: after a sync(), no answer is older than what was
// known. Within a session, servers ensure this themselves up to the last answer; before 3.9 they do not count events. A
// server may delay the sync() and not the reads behind it: so the reads wait for the answer to the sync().
void request_table::feeds_connected() {
    const std::int64_t session = owner_.id_of(*owner_.current_session());
    const bool may_lag = synced_session_ != 0 && (synced_session_ != session || ahead_of_answers_);
    if (!may_lag || feeds_.empty()) {
        synced_session_ = session;
        return feeds_.connected();
    }
    command c;
    c.what = sync_request{"/"};
    c.connection = feeds_.connection();
    submit(std::move(c), [this, session](reply&& r) {
        if (r.code == condition::session_ended) return;
        if (!r.code) synced_session_ = session;  // otherwise with the next connection
        feeds_.connected();
    });
}

void request_table::feeds_disconnected() {
    questions_.clear();
    questions_asked_ = 0;
    late_reads_.clear();
    feeds_.disconnected([this](const std::string& path, watch_kind kind) { forget_watch(path, kind); });
}

}  // namespace zkasio::detail
