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
    if (unneeded) return send_watch_removal(*target.path, watches_.server_kind(target.kind));
    if (!live) leave_one_watch(*target.path);
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
    // The watch was a feed's, and has gone with the connection; or a recursive one is there, or may be, which the
    // removal would take along, or the other way round.
    const auto one = one_watches_.find(path);
    const bool beside_recursive = one != one_watches_.end() && one->second.asks_recursive;
    const bool is_apart = kind == watch_kind::children && beside_recursive && needs_one_watch(path);
    const bool goes_along = has_one_watch(path) || (one != one_watches_.end() && one->second.is_in_doubt);
    if (!link_.connected() || (goes_along && !is_apart)) {
        forget_watch(path, kind);
        watches_.removed(path, kind, true);
        return leave_one_watch(path);
    }
    command c(remove_watch_request{path, kind});
    c.pinned = owner_.current_session();
    submit(std::move(c), [this, path, kind](reply&& r) {
        if (r.code == condition::session_ended) return;
        if (r.code == zk_errc::no_watcher) forget_watch(path, kind);  // the library still has it
        const bool refused = r.code && r.code != zk_errc::no_watcher && !r.sent;
        if (refused && !owner_.is_closing()) return watches_.left_standing(path, kind);
        if (watches_.removed(path, kind, refused || !r.sent)) return send_watch_removal(path, kind);
        leave_one_watch(path);
    });
}

void request_table::leave_watch(const watch_ptr& w) {
    if (watches_.leave(*w)) send_watch_removal(w->path, watches_.server_kind(w->kind));
}

void request_table::hear(detail::node_event e, std::string_view path) {
    telemetry_.counters.watch_events.add();
    ahead_of_answers_ = true;
    if (e == detail::node_event::removed) {
        ephemerals_.heard_gone(path);
        tell_room();
    }
}

void request_table::node_event(detail::node_event e, std::string_view path) {
    hear(e, path);
    for (const watch_ptr& w : watches_.fire(e, path)) waits_.fire(w->fired);
    feeds_.changed(static_cast<node_change>(e), path, false);
}

void request_table::end_watches(std::error_code code) {
    for (const watch_ptr& w : watches_.clear()) waits_.fire(w->fired, code);
}

// ----------------------------------------------------------------------------------- questions on a new connection

namespace {

bool is_for_watch(const request& question) { return watch_of(question).path != nullptr; }

}  // namespace

void request_table::drop_questions_of_budget() {
    std::erase_if(questions_, [](const request& q) { return !is_for_watch(q); });
}

void request_table::ask_questions() {
    drop_questions_of_budget();
    for (request& q : ephemerals_.questions()) questions_.push_back(std::move(q));
    ask_more();
}

void request_table::ask_more() {
    constexpr std::size_t most_at_once = 64;  // so that no other request waits long behind thousands
    if (questions_.empty() || clock::now() < no_questions_before_) return;
    while (!questions_.empty() && questions_asked_ < most_at_once) {
        command c(std::move(questions_.front()));
        questions_.pop_front();
        c.sets_again = is_for_watch(*c.what);
        const auto* const e = std::get_if<exists_request>(&*c.what);
        if (c.sets_again ? !watches_.is_unset(watch_of(*c.what)) : e && !ephemerals_.is_in_doubt(e->path)) continue;
        c.pinned = owner_.current_session();
        c.connection = feeds_.connection();
        ++questions_asked_;
        // registration_done() and leave_room() have looked at the answer.
        const auto more = [this, of = c.connection](reply&& r) {
            if (of != feeds_.connection()) return;
            --questions_asked_;
            const bool answered = !r.code || r.code == zk_errc::no_node || r.code == zk_errc::no_auth;
            // Asked again when the budget is short, or on the next connection.
            if (!answered) drop_questions_of_budget();
            if (r.code == condition::session_ended || r.code == errc::forked) return questions_.clear();
            ask_more();
        };
        submit(std::move(c), more);
    }
}

// ----------------------------------------------------------------------------------------- the end of a connection

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

}  // namespace zkasio::detail
