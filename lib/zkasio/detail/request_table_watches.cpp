// The part of request_table that is about watches: which of them are set, and how those that nobody waits for are taken
// back.

#include <zkasio/detail/request_table.hpp>

#include <utility>

namespace zkasio::detail {

void request_table::registration_done(const entry& e, const std::error_code& code) {
    const watch_target target = watch_of(*e.what);
    const bool live = !code || (target.missing_node_counts && code == zk_errc::no_node);
    if (watches_.finish(*target.path, target.kind, live, e.abandoned ? nullptr : e.watch))
        send_watch_removal(*target.path, target.kind);
}

void request_table::send_watch_removal(const std::string& path, watch_kind kind) {
    if (!link_.connected() || owner_.is_closing()) {
        // The server has forgotten it together with the connection; the library must not bring it back. In a turn of
        // its own, because this may be one of the library's callbacks.
        return owner_.later([this, path, kind] {
            if (link_.is_open() && !link_.connected()) {
                link_.backend().forget_watch(path, kind);
                watches_.removed(path, kind, true);
            } else if (watches_.removed(path, kind, false)) {
                send_watch_removal(path, kind);
            }
        });
    }
    command c;
    c.what = remove_watch_request{path, kind};
    c.pinned = owner_.current_session();
    submit(std::move(c), [this, path, kind](reply&& r) {
        const bool gone = !r.code || r.code == zk_errc::no_watcher;
        if (r.code == condition::session_ended) return;
        if (watches_.removed(path, kind, gone)) send_watch_removal(path, kind);
    });
}

void request_table::leave_watch(const watch_ptr& w) {
    if (watches_.leave(*w)) send_watch_removal(w->path, w->kind);
}

void request_table::node_event(detail::node_event e, std::string_view path) {
    for (const watch_ptr& w : watches_.fire(e, path)) waits_.fire(w->fired);
}

void request_table::end_watches(std::error_code code) {
    for (const watch_ptr& w : watches_.clear()) waits_.fire(w->fired, code);
}

}  // namespace zkasio::detail
