#include <zkasio/recipes/detail/contender.hpp>

#include <zkasio/path.hpp>

namespace zkasio::recipes::detail {
namespace {

// Somebody left while the create was under way.
asio::awaitable<void> withdraw(session on, pending_create creating, std::string directory, std::string id) {
    created node;
    bool unknown = false;
    try {
        node = co_await creating.result();
    } catch (const error& e) {
        if (e.code() == condition::session_ended || !e.outcome_unknown()) co_return;  // there is no node, or it is gone
        unknown = true;
    }
    if (unknown) {
        const std::optional<created> left = co_await on.find_protected(directory, id);
        if (!left) co_return;
        node = *left;
    }
    on.ensure_removed(node.path);
}

}  // namespace

queue_place::queue_place(client zk, session on, std::string directory, std::string marker, std::string data, acl entries)
    : zk_(std::move(zk)),
      on_(std::move(on)),
      directory_(std::move(directory)),
      marker_(std::move(marker)),
      data_(std::move(data)),
      acl_(std::move(entries)) {}

queue_place::~queue_place() {
    if (kept_) return;
    try {
        if (!node_.path.empty())
            on_.ensure_removed(node_.path);
        else if (creating_)
            zk_.run_in_background(withdraw(on_, std::move(*creating_), directory_, id_));
    } catch (...) {
        // Out of memory: the node goes with the session.
    }
}

asio::awaitable<std::vector<std::string>> queue_place::enter() {
    create_options options;
    options.mode(create_mode::ephemeral_sequential).acl(acl_);
    for (;;) {
        id_ = new_protection_id();  // never used twice: somebody may still be looking for the old one
        creating_ = on_.start_create(join_path(directory_, protection_prefix(id_) + marker_), bytes(data_), options);
        const pending_children listing = on_.start_children(directory_);

        std::error_code failed;
        try {
            node_ = co_await creating_->result();
        } catch (const error& e) {
            const bool lost = e.outcome_unknown() && e.code() == condition::retryable;
            if (!lost && e.code() != zk_errc::no_node) {
                if (e.code() != condition::cancelled) creating_.reset();
                throw;
            }
            failed = e.code();
        }
        if (!failed) {
            creating_.reset();
            std::error_code list_failed;
            try {
                node_children found = co_await listing.result();
                co_return std::move(found.names);
            } catch (const error& e) {
                if (e.code() != condition::retryable) throw;
                list_failed = e.code();
            }
            co_return co_await look();
        }
        if (failed == zk_errc::no_node) {
            creating_.reset();
            // A container: the server removes the directory when nobody has used it for a while.
            create_options parent;
            parent.mode(create_mode::container).parents(missing_parents::create_container).acl(acl_);
            std::error_code exists;
            try {
                co_await on_.create(directory_, bytes(), parent);
            } catch (const error& e) {
                if (e.code() != zk_errc::node_exists && e.code() != condition::retryable) throw;
                exists = e.code();
            }
            continue;
        }
        const std::optional<created> found = co_await on_.find_protected(directory_, id_);
        creating_.reset();
        if (!found) continue;
        node_ = *found;
        co_return co_await look();
    }
}

asio::awaitable<std::vector<std::string>> queue_place::look() {
    node_children found = co_await on_.children(directory_);
    co_return std::move(found.names);
}

lock_step queue_place::decide(const std::vector<std::string>& children) const {
    return next_step(children, node_name(node_.path), id_, marker_, directory_);
}

void queue_place::remove_duplicates(const lock_step& step) const {
    for (const std::string& name : step.duplicates) on_.ensure_removed(join_path(directory_, name));
}

// ------------------------------------------------------------------------------------------------------ waiting

namespace {

// Returns when the predecessor is gone: true if its deletion was seen, false if it was gone already.
asio::awaitable<bool> predecessor_gone(session on, std::string path) {
    for (;;) {
        std::optional<watched<node_data>> seen;
        std::error_code failed;
        try {
            seen.emplace(co_await on.get_and_watch(path));  // get: it leaves no watch on a node that is gone (CURATOR-107)
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
            failed = e.code();
        }
        if (failed) co_return false;
        const watch_event event = co_await seen->changes.changed();
        if (event.what == node_change::removed) co_return true;
    }
}

}  // namespace

asio::awaitable<std::optional<grant>> contend(client zk, std::string directory, std::string marker, std::string data,
                                              acl entries, patience how_long) {
    const session on = co_await zk.current_session();
    for (;;) {  // a new place, whenever somebody has taken ours away
        queue_place place(zk, on, directory, marker, data, entries);
        std::vector<std::string> children = co_await place.enter();
        std::optional<session_hold> hold;
        for (;;) {
            const lock_step step = place.decide(children);
            place.remove_duplicates(step);
            if (step.what == lock_step::kind::gone) break;
            bool granted = step.what == lock_step::kind::owned;
            if (!granted) {
                if (how_long == patience::first_or_nothing) co_return std::nullopt;
                // The next in line has its lease ready, so that the grant costs no round trip; far behind nobody needs one.
                if (step.position == 1 && (!hold || hold->reason() != loss_reason::none)) hold.emplace(on.hold(place.path()));
                const bool seen = co_await predecessor_gone(on, join_path(directory, step.predecessor));
                // A hold that has ended meanwhile may mean that our own node is gone: then look first.
                granted = seen && step.position == 1 && hold->held();
            }
            if (granted) {
                if (!hold || !hold->held()) hold.emplace(on.hold(place.path()));
                std::error_code not_ours;
                if (!hold->held()) {
                    try {
                        co_await hold->confirmed();
                    } catch (const error& e) {
                        if (e.code() != errc::lock_lost || on.over()) throw;
                        not_ours = e.code();
                    }
                }
                if (not_ours && hold->reason() == loss_reason::node_deleted) break;
                if (not_ours) {  // the lease has run out meanwhile: start over, at the same place
                    hold.reset();
                } else {
                    place.keep();
                    grant g{on, std::move(*hold), place.path(), place.czxid()};
                    co_return std::optional<grant>(std::move(g));
                }
            }
            children = co_await place.look();
        }
    }
}

}  // namespace zkasio::recipes::detail
