// The part of request_table that reads and watches for node_feeds.

#include <zkasio/detail/requests/request_table.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace zkasio::detail {

void request_table::add_feed(const feed_ptr& f, const session_record* pinned) {
    const std::error_code refused = owner_.refusal(pinned);
    if (!refused) feeds_.add(f);
    owner_.later([this, f, refused] {
        if (refused)
            feeds_.refuse(f, refused);
        else
            tell(f);
    });
}

void request_table::remove_feed(feed_state& f) {
    feeds_.remove(f);
    leave_one_watch(f.root);
}

// ------------------------------------------------------------------------------------------------------- reading

namespace {

constexpr std::size_t enough_batches = 2;        // under way: the servers have something to do
constexpr std::size_t largest_batch = 64 << 10;  // bytes of paths
constexpr std::size_t weight_of_listing = 8;     // of an unknown size; a read of data has 1

}  // namespace

void request_table::read_for(const feed_ptr& to, node_read what, std::string path) {
    if (!link_.connected()) return;
    const bool in_batch = to->by_one_watch && to->reads_in_batches && what != node_read::stat;
    if (!in_batch) return read_alone(to, what, std::move(path));
    to->batch.emplace_back(what, std::move(path));
    if (to->batch.size() >= to->most_in_batch) return send_batches(to);
    if (to->batch.size() > 1) return;
    owner_.later([this, to, of = feeds_.connection()] {
        if (of == feeds_.connection()) send_batches(to);
    });
}

void request_table::submit_for(const feed_ptr& to, command&& c, std::function<void(reply&&)> then) {
    c.connection = feeds_.connection();
    const op_id id = submit(std::move(c), std::move(then));
    if (const auto it = entries_.find(id); it != entries_.end() && it->second.is_late) late_reads_.emplace(id, to);
}

void request_table::read_alone(const feed_ptr& to, node_read what, std::string path) {
    const bool watch = !to->by_one_watch;
    command c;
    switch (what) {
        case node_read::data: c.what = get_request{path, watch}; break;
        case node_read::stat: c.what = exists_request{path, watch}; break;
        case node_read::children: c.what = children_request{path, watch}; break;
    }
    if (watch) watches_.feed_reads();
    submit_for(to, std::move(c), [this, to, what, watch, path = std::move(path)](reply&& r) {
        if (r.code == condition::session_ended || r.code == errc::forked) return;
        const std::error_code code = r.code;
        if (!code && to->most_in_batch == 1) to->learn_size(size_of(r), 1);
        feeds_.answered(to, what, path, code, {std::move(r.data), r.stat, std::move(r.children)});
        // A refused read has set no watch: is the watch that was kept for its sake still needed?
        if (watch && watches_.feed_answered(path, kind_of(what)) && code) leave_feed_watch(what, path);
        if (code) leave_one_watch(path);
    });
}

void request_table::send_batches(const feed_ptr& to) {
    while (!to->batch.empty() && to->batches_under_way < enough_batches) {
        if (to->listener.expired()) return to->batch.clear();
        std::size_t n = 0;
        for (std::size_t weight = 0, bytes = 0; n < to->batch.size(); ++n) {
            const auto& [what, path] = to->batch[n];
            weight += what == node_read::children ? weight_of_listing : 1;
            bytes += path.size() + link_.chroot().size();
            if (n > 0 && (weight > to->most_in_batch || bytes > largest_batch || !to->reads_in_batches)) break;
        }
        const auto end = to->batch.begin() + static_cast<std::ptrdiff_t>(n);
        std::vector<feed_state::read> reads(std::make_move_iterator(to->batch.begin()), std::make_move_iterator(end));
        to->batch.erase(to->batch.begin(), end);
        if (reads.size() == 1)
            read_alone(to, reads.front().first, std::move(reads.front().second));
        else
            send_batch(to, std::move(reads));
    }
}

void request_table::send_batch(const feed_ptr& to, std::vector<feed_state::read> reads) {
    multi_read_request all;
    for (const auto& [what, path] : reads) {
        if (what == node_read::children)
            all.reads.emplace_back(children_request{path, false});
        else
            all.reads.emplace_back(get_request{path, false});
    }
    ++to->batches_under_way;
    submit_for(to, command(std::move(all)),
               [this, to, reads = std::move(reads)](reply&& r) { batch_answered(to, reads, std::move(r)); });
}

void request_table::batch_answered(const feed_ptr& to, const std::vector<feed_state::read>& reads, reply&& r) {
    if (r.code == condition::session_ended || r.code == errc::forked) return;
    --to->batches_under_way;
    if (r.code == zk_errc::unimplemented) {
        to->reads_in_batches = false;
        for (const auto& [what, path] : reads) read_alone(to, what, path);
        return send_batches(to);
    }
    if (!r.code) to->learn_size(size_of(r), reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
        const auto& [what, path] = reads[i];
        node_answer answer;
        std::error_code code = r.code;
        if (!code && i < r.results.size()) {
            multi_result& one = r.results[i];
            code = one.code;
            answer = {std::move(one.data), one.stat.value_or(node_stat()), std::move(one.children)};
        }
        feeds_.answered(to, what, path, code, std::move(answer));
    }
    send_batches(to);
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

// ------------------------------------------------------------------------------------------------- the connection

// The servers of a new session may lag behind those of the old one: after a sync(), no answer is older than what was
// known. Within a session, servers ensure this themselves up to the last answer; before 3.9 they do not count events. A
// server may delay the sync() and not the reads behind it: so the reads wait for the answer to the sync().
void request_table::feeds_connected() {
    const std::int64_t session = owner_.id_of(*owner_.current_session());
    const bool may_lag = synced_session_ != 0 && (synced_session_ != session || ahead_of_answers_);
    if (!may_lag || feeds_.empty()) {
        synced_session_ = session;
        return tell_feeds();
    }
    command c(sync_request{"/"});
    c.connection = feeds_.connection();
    submit(std::move(c), [this, session](reply&& r) {
        if (r.code == condition::session_ended) return;
        if (!r.code) synced_session_ = session;  // otherwise with the next connection
        tell_feeds();
    });
}

void request_table::feeds_disconnected() {
    questions_.clear();
    questions_asked_ = 0;
    late_reads_.clear();
    conclude_one_watches();
    feeds_.disconnected([this](const std::string& path, watch_kind kind) { forget_watch(path, kind); });
}

void request_table::tell_feeds() {
    const bool is_pause_over = clock::now() >= no_one_watch_before_;
    if (is_pause_over) no_one_watch_before_ = {};
    for (const feed_ptr& f : feeds_.connected()) {
        // A stream asks for its watch again in the same connection; see conclude_one_watches().
        if (f->up && !f->by_one_watch && is_pause_over && f->is_stream) {
            const auto at = one_watches_.find(f->root);  // another feed of this root may have asked already
            f->up = at != one_watches_.end() && at->second.is == one_watch::stage::refused;
        }
        if (!f->up) tell(f);
    }
}

// ------------------------------------------------------------------------------- one recursive watch for all nodes

// Before it reads, a feed that wants such a watch has it, or knows that the server has none.
void request_table::tell(const feed_ptr& f) {
    if (!feeds_.is_up()) return;
    const bool asks = f->wants_one_watch && !options_.reads_only() && clock::now() >= no_one_watch_before_;
    if (!asks) return feeds_.tell(f, false);
    const auto [at, is_new] = one_watches_.try_emplace(f->root);
    one_watch& w = at->second;
    const bool is_refused = w.is == one_watch::stage::refused;
    const bool is_to_become_recursive = f->wants_recursive && !w.is_recursive && !is_refused;
    if (w.is == one_watch::stage::asked || is_to_become_recursive)
        w.waiting.push_back(f);
    else
        feeds_.tell(f, !is_refused, w.is_recursive);
    if (!is_new && (!is_to_become_recursive || w.asks_recursive)) return;
    w.asks_recursive = f->wants_recursive;
    ask_for_one_watch(f->root);
}

// What the library has registered there, before the recursive watch or beside it.
void request_table::forget_watches_at(const std::string& root) {
    forget_watch(root, watch_kind::data);
    forget_watch(root, watch_kind::children);
}

// There are servers that hang up at a request that they do not know, without an answer.
void request_table::conclude_one_watches() {
    constexpr int enough = 2;
    constexpr std::chrono::minutes pause(10);  // the connections may have broken by chance
    const bool is_lost = std::any_of(one_watches_.begin(), one_watches_.end(),
                                     [](const auto& w) { return w.second.is == one_watch::stage::asked; });
    for (const auto& [root, w] : one_watches_) forget_watches_at(root);
    one_watches_.clear();
    if (!is_lost || ++one_watch_lost_ < enough) return;
    one_watch_lost_ = 0;
    no_one_watch_before_ = clock::now() + pause;
}

void request_table::ask_for_one_watch(const std::string& root) {
    one_watch& w = one_watches_.find(root)->second;
    ++w.unanswered;
    command c(add_watch_request{root, w.asks_recursive});
    c.connection = feeds_.connection();
    submit(std::move(c), [this, root, recursive = w.asks_recursive](reply&& r) {
        if (r.code != condition::session_ended && r.code != errc::forked) one_watch_answered(root, recursive, r.code);
    });
}

void request_table::one_watch_answered(const std::string& root, bool recursive, std::error_code code) {
    const auto at = one_watches_.find(root);
    if (at == one_watches_.end()) return;
    one_watch& w = at->second;
    one_watch_lost_ = 0;
    if (--w.unanswered > 0) return;  // the last one decides
    constexpr int enough = 10;  // others read the root with watches all the time
    // Wanted by nobody any more, it is only removed: whoever leaves does not wait for another one.
    const bool is_replaced = !code && std::exchange(w.is_replaced, false) && needs_one_watch(root);
    if (!code && recursive) set_children_watch_again(root);
    if (is_replaced && ++w.asked_again < enough) return ask_for_one_watch(root);
    const bool stands = !code && !is_replaced;
    w.is = stands ? one_watch::stage::stands : one_watch::stage::refused;
    w.is_in_doubt = is_replaced;
    w.is_recursive = recursive;
    if (stands && recursive) feeds_.become_recursive(root);
    if (code && recursive && !std::exchange(told_no_one_watch_, true))
        log_.info("this server refuses recursive watches, so caches set a watch for each node: " + code.message());
    for (const feed_ptr& f : std::exchange(w.waiting, {})) feeds_.tell(f, stands, recursive);
    leave_one_watch(root);
}

bool request_table::waits_for_one_watch(const feed_state& f) const {
    const auto at = f.wants_one_watch && !f.up ? one_watches_.find(f.root) : one_watches_.end();
    return at != one_watches_.end() && at->second.is == one_watch::stage::asked;
}

bool request_table::has_one_watch(std::string_view path) const {
    const auto at = one_watches_.find(path);
    return at != one_watches_.end() && at->second.is >= one_watch::stage::stands;
}

bool request_table::needs_one_watch(const std::string& root) const {
    const auto any = [&](watch_kind kind) { return watches_.has(root, kind) || feeds_.watches(root, kind); };
    return feeds_.want_one_watch(root) || any(watch_kind::data) || any(watch_kind::children);
}

// As long as others wait for changes of the root itself, the watch stays for their sake.
void request_table::leave_one_watch(const std::string& root) {
    const auto at = one_watches_.find(root);
    if (at == one_watches_.end() || needs_one_watch(root) || owner_.is_closing() || !link_.connected()) return;
    one_watch& w = at->second;
    const bool stands = w.is == one_watch::stage::stands;
    if (!std::exchange(w.is_in_doubt, false) && !stands) return;
    if (stands) w.is = one_watch::stage::leaving;
    command c(remove_added_watch_request{root});
    c.connection = feeds_.connection();
    submit(std::move(c), [](reply&&) {});
}

// False: somebody has come to need it since, or it is asked to become recursive: then it is removed after the answer.
bool request_table::confirm_leaving(const std::string& root) {
    const auto at = one_watches_.find(root);
    if (at == one_watches_.end()) return !needs_one_watch(root);  // a busy server has refused to remove it
    one_watch& w = at->second;
    const bool is_leaving = w.is == one_watch::stage::leaving;
    if (!is_leaving && w.is != one_watch::stage::refused) return false;
    if (!needs_one_watch(root) && w.unanswered == 0) return true;
    if (is_leaving)
        w.is = one_watch::stage::stands;
    else
        w.is_in_doubt = true;
    return false;
}

// At the very node of an added watch there is no other one for its data: before 3.9 a read that sets one takes the
// place of the added one (ZOOKEEPER-4466), and so does a removal. Whoever waits there is told by added_watch_event().
// A watch for its children is apart if the added one is recursive, and so does not tell of them.
bool request_table::takes_watch_along(const request& r) {
    const watch_target target = watch_of(r);
    const auto* const removal = std::get_if<remove_watch_request>(&r);
    const bool of_children = (removal ? removal->kind : target.kind) == watch_kind::children;
    const std::string* const path = removal ? &removal->path : target.path;
    const auto at = path ? one_watches_.find(*path) : one_watches_.end();
    if (at == one_watches_.end() || at->second.is == one_watch::stage::refused) return false;
    if (of_children && at->second.asks_recursive) return false;
    if (at->second.is != one_watch::stage::asked) return true;
    at->second.is_replaced = true;
    return false;
}

// A removal that is about to be sent: of a recursive watch, or of one that such a watch has taken the place of.
bool request_table::is_needed_beside_one_watch(const request& r) {
    if (const auto* const added = std::get_if<remove_added_watch_request>(&r)) return confirm_leaving(added->path);
    const auto* const other = std::get_if<remove_watch_request>(&r);
    if (!other || !takes_watch_along(r)) return true;
    forget_watch(other->path, other->kind);
    watches_.removed(other->path, other->kind, true);
    return false;
}

// Before 3.9 a recursive watch takes the place of the watch for the children of its very node, and does not tell of
// them. Whoever had one looks again, and has it again.
void request_table::set_children_watch_again(const std::string& root) {
    if (watches_.unset(root, watch_kind::children)) {
        forget_watch(root, watch_kind::children);
        questions_.emplace_back(children_request{root, true});
        ask_more();
    }
    if (feeds_.watches(root, watch_kind::children)) feeds_.changed(node_change::children_changed, root, true, true);
}

void request_table::added_watch_event(detail::node_event e, std::string_view path, std::int64_t zxid) {
    hear(e, path);
    const bool at_root = has_one_watch(path);
    if (at_root)
        for (const watch_ptr& w : watches_.fire(e, path)) waits_.fire(w->fired);
    feeds_.changed(static_cast<node_change>(e), path, true, at_root, zxid);
    if (at_root) leave_one_watch(std::string(path));
}

}  // namespace zkasio::detail
