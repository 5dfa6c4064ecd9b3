#include <zkasio/detail/core.hpp>

#include <zkasio/detail/random_engine.hpp>
#include <zkasio/detail/validate.hpp>
#include <zkasio/path.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

#include <algorithm>

namespace zkasio::detail {
namespace {

// Which watch a request sets, and whether its answer says that it is set (fact 18).
struct watch_target {
    const std::string* path = nullptr;
    watch_kind kind = watch_kind::data;
    bool missing_node_counts = false;
};

watch_target watch_of(const request& r) {
    static const std::string config = "/zookeeper/config";
    if (const auto* g = std::get_if<get_request>(&r); g && g->watch) return {&g->path, watch_kind::data, false};
    if (const auto* e = std::get_if<exists_request>(&r); e && e->watch) return {&e->path, watch_kind::data, true};
    if (const auto* c = std::get_if<children_request>(&r); c && c->watch)
        return {&c->path, watch_kind::children, false};
    if (const auto* c = std::get_if<get_config_request>(&r); c && c->watch) return {&config, watch_kind::config, false};
    return {};
}

// Of a removal that depends on other nodes: the one that does not exist.
std::optional<std::string> missing_node(const request& what, const reply& r) {
    const auto* m = std::get_if<multi_request>(&what);
    if (!m) return std::nullopt;
    for (std::size_t i = 0; i + 1 < std::min(m->ops.size(), r.results.size()); ++i)
        if (r.results[i].code == zk_errc::no_node) return std::get<check_op>(m->ops[i]).path;
    return std::nullopt;
}

std::string removed_path(const request& what) {
    const auto* m = std::get_if<multi_request>(&what);
    return m ? std::get<remove_request>(m->ops.back()).path : std::string(path_of(what));
}

// Whether "no such node" can only mean that the client's own root is missing.
bool about_root(const request& r) {
    const std::string_view path = path_of(r);
    return path == "/" || (std::holds_alternative<create_request>(r) && parent_path(path) == "/");
}

void check_range(client_options::duration value, const char* name) {
    if (value <= client_options::duration::zero())
        throw error(errc::invalid_argument, "client options", {}, std::string(name) + " must be positive");
    if (value > std::chrono::hours(24))  // the C client counts milliseconds in an int, and multiplies
        throw error(errc::invalid_argument, "client options", {}, std::string(name) + " is longer than a day");
}

}  // namespace

core::core(asio::any_io_executor executor, client_options options, backend_factory factory)
    : strand_(asio::make_strand(std::move(executor))),
      options_(std::move(options)),
      factory_(std::move(factory)),
      servers_(parse_server_list(options_.servers(), "client options")),
      watches_(servers_.chroot.size()),
      auth_(options_.auth()),
      socket_(std::make_shared<socket_watch>(strand_)),
      resolver_(strand_),
      timer_(strand_),
      random_(random_engine()()) {
    for (const auth_info& a : auth_) validate(add_auth_request{a.scheme(), a.credential()}, 0, "client options");
    check_range(options_.session_timeout(), "session_timeout");
    // The C client waits 2/3 of what is asked for, in whole milliseconds, for the answer to its handshake.
    if (options_.session_timeout() < std::chrono::milliseconds(100))
        throw error(errc::invalid_argument, "client options", {},
                    "session_timeout is shorter than 100 ms: no server could answer in time (they grant 2 of their ticks at least)");
    check_range(options_.connection_timeout(), "connection_timeout");
    check_range(options_.close_timeout(), "close_timeout");
    if (options_.tick() != client_options::duration::zero()) check_range(options_.tick(), "tick");
    if (const session_credentials* c = options_.resume()) {
        if (c->id() == 0 || c->password().size() != 16)
            throw error(errc::invalid_argument, "client options", {},
                        "resume() needs a session id and its password of 16 bytes");
        resume_ = *c;
    }
    session_ = std::make_shared<session_record>();
}

session_record_ptr core::current_session_record() const {
    const std::lock_guard lock(session_mutex_);
    return session_;
}

std::string core::server_names() const {
    const std::lock_guard lock(session_mutex_);
    return servers_.text + servers_.chroot;
}

double core::random() {
    const std::lock_guard lock(random_mutex_);
    return std::uniform_real_distribution<double>(0, 1)(random_);
}

// --------------------------------------------------------------------------------------------- taking requests

void core::submit(op_id id, command c, std::unique_ptr<receiver> to) {
    operation op;
    op.to = std::move(to);
    op.what = std::move(c.what);
    op.pinned = std::move(c.pinned);
    op.watch = std::move(c.watch);
    enqueue(id, std::move(op));
}

void core::submit(command c, std::shared_ptr<kept_reply> to, bool until_certain) {
    operation op;
    op.kept_reply = std::move(to);
    op.what = std::move(c.what);
    op.pinned = std::move(c.pinned);
    op.watch = std::move(c.watch);
    op.until_certain = until_certain;
    const op_id id = op.kept_reply->id = next_id();
    enqueue(id, std::move(op));
}

bool core::withdraw(const std::shared_ptr<kept_reply>& asked) {
    const auto it = operations_.find(asked->id);
    if (it == operations_.end() || it->second.kept_reply != asked || it->second.issued || it->second.until_certain) return false;
    fail(it->first, asio::error::operation_aborted);
    return true;
}

void core::request_internally(request what, std::function<void(reply&&)> then, urgency u) {
    operation op;
    op.what = std::move(what);
    op.pinned = session_;
    op.internal = std::move(then);
    op.urgent = u == urgency::first;
    enqueue(next_id(), std::move(op));
}

void core::wait_connected(op_id id, std::unique_ptr<receiver> to) {
    operation op;
    op.to = std::move(to);
    enqueue(id, std::move(op));  // a request without a request: done when its turn comes
}

void core::enqueue(op_id id, operation op) {
    reply refused;
    if (forked())
        refused.code = errc::forked;
    else if (closing_ != closing::no)
        refused.code = errc::client_closed;
    else if (op.pinned && op.pinned->over.load(std::memory_order_relaxed))
        refused.code = errc::session_expired;
    else if (state() == session_state::auth_failed)
        refused.code = zk_errc::auth_failed;
    else if (state() == session_state::expired)
        refused.code = errc::session_expired;
    if (refused.code) return finish(std::move(op), std::move(refused));

    op.queued = clock::now();
    const bool urgent = op.urgent, may_expire = !op.until_certain && !op.internal;
    operations_.emplace(id, std::move(op));
    (urgent ? urgent_ : outbox_).push_back(id);
    // Those that were cancelled while there was no connection.
    if (outbox_.size() > 2 * operations_.size() + 1000) std::erase_if(outbox_, [&](op_id other) { return !operations_.contains(other); });
    if (link_ == link_state::connected) {
        schedule_flush();
    } else {
        if (may_expire) expiring_.push_back(id);
        rearm_timer(clock::now());
    }
}

// What one turn of the strand asks for leaves together: the flush runs behind everything that is queued already. And as long as
// that brings more (a lock that is handed from one to the next, and released by each at once), behind that, too.
void core::schedule_flush() {
    if (std::exchange(flush_scheduled_, true)) return;
    post_flush(0, 0);
}

void core::post_flush(std::size_t seen, int passes) {
    constexpr int most_passes = 8;
    asio::post(strand_, [self = shared_from_this(), seen, passes] {
        const std::size_t now = self->outbox_.size();
        if (now > seen && passes < most_passes) return self->post_flush(now, passes + 1);
        self->flush_scheduled_ = false;
        if (self->left_behind()) return;
        const time_point at = clock::now();
        self->begin_turn(at);
        if (at >= self->backend_deadline_) self->read_what_has_come();
        self->flush();
        self->drive();
    });
}

void core::flush() {
    if (link_ != link_state::connected || !something_to_send() || closing_ == closing::goodbye) return;
    const time_point now = clock::now();
    const bool batch = urgent_.size() + again_.size() + outbox_.size() > 1;
    bool submitted = false;
    if (batch) backend_->begin_batch();
    while (const auto next = next_to_send(now)) {
        const op_id id = *next;
        const auto it = operations_.find(id);
        operation& op = it->second;
        if (!op.what) {
            fail(id, {});
            continue;
        }
        if (const auto* r = std::get_if<remove_watch_request>(&*op.what); r && !watches_.confirm_removal(r->path, r->kind)) {
            operations_.erase(it);
            continue;
        }
        const watch_target target = watch_of(*op.what);
        if (target.path && !watches_.begin(*target.path, target.kind)) {
            fail(id, errc::too_many_watches);
            continue;
        }
        auto* const auth = std::get_if<add_auth_request>(&*op.what);
        if (auth && has_auth({auth->scheme, auth->credential})) auth->known = true;  // the library presents each that it is given
        last_submit_ = now;
        submitted = true;
        const std::error_code refused = backend_->submit(id, *op.what);
        if (refused && target.path) registration_done(op, refused);
        if (refused == std::errc::resource_unavailable_try_again) {
            put_back(id, op);
            flush_when_writable_ = true;
            break;
        }
        if (refused) {
            fail(id, refused);
            continue;
        }
        if (auth && !auth->known) {
            ++unconfirmed_auths_;
            op.unconfirmed = true;
        }
        op.issued = true;
        op.sent = now;
        ++issued_;
    }
    if (batch || submitted) backend_->end_batch();
}

// Takes it out of where it waits. Nothing: there is none, or enough is under way.
std::optional<op_id> core::next_to_send(time_point now) {
    while (something_to_send()) {
        op_id id = 0;
        if (!urgent_.empty()) {
            id = urgent_.front();
            urgent_.pop_front();
        } else if (issued_ >= window) {
            return std::nullopt;
        } else if (!again_.empty() && now >= again_not_before_) {
            id = again_.extract(again_.begin()).value();
        } else if (!outbox_.empty()) {
            id = outbox_.front();
            outbox_.pop_front();
        } else {
            return std::nullopt;  // until again_not_before_
        }
        if (operations_.contains(id)) return id;  // else it was cancelled
    }
    return std::nullopt;
}

void core::put_back(op_id id, const operation& op) {
    if (op.urgent)
        urgent_.push_front(id);
    else if (op.sent != time_point{})
        again_.insert(id);
    else
        outbox_.push_front(id);
}

// In front of what was asked for later: who has had a node removed relies on that. Only a refusal may be overtaken: it is not repeated
// at once, and nobody shall wait for that.
void core::send_again(op_id id, std::error_code why) {
    again_.insert(id);
    const time_point now = clock::now();
    if (why != zk_errc::connection_loss && now >= again_not_before_) {
        again_not_before_ = now + options_.retry().pause(again_refused_, random());
        again_refused_ = std::min(again_refused_ + 1, 1000);
        rearm_timer(now);
    }
    schedule_flush();
}

// ------------------------------------------------------------------------------------------------ completing

void core::finish(operation&& op, reply&& r) {
    if (op.what && !is_write(*op.what)) r.sent = false;  // whether it has arrived makes no difference
    if (op.to) return op.to->deliver(std::move(r));
    if (op.internal) return op.internal(std::move(r));
    if (op.kept_reply) {
        op.kept_reply->reply = std::move(r);
        fire(op.kept_reply->answered);
    }
}

void core::fail(op_id id, std::error_code code) {
    auto node = operations_.extract(id);
    if (node.empty()) return;
    reply r;
    r.code = code;
    r.sent = code && node.mapped().sent != time_point{};
    if (code == errc::not_connected) r.data = why_not_connected();  // what the message will say
    if (node.mapped().issued) --issued_;
    finish(std::move(node.mapped()), std::move(r));
}

void core::fire(const one_shot_ptr& w, std::error_code code) {
    if (std::exchange(w->done, true)) return;
    w->code = code;
    if (const auto then = std::exchange(w->then, {})) call(then);
    w->wake_all([&](op_id id) { end_wait(id, code); });
}

void core::wait(op_id id, const one_shot_ptr& on, std::unique_ptr<receiver> to) {
    if (on->done || closing_ == closing::done || forked()) {  // after the end nothing happens any more
        reply r;
        r.code = on->done ? on->code : make_error_code(forked() ? errc::forked : errc::client_closed);
        return to->deliver(std::move(r));
    }
    on->add(id);
    waits_.emplace(id, wait_entry{std::move(to), on});
}

void core::end_wait(op_id id, std::error_code code) {
    const auto node = waits_.extract(id);
    if (node.empty()) return;
    reply r;
    r.code = code;
    node.mapped().to->deliver(std::move(r));
}

void core::wait_event(op_id id, const std::shared_ptr<event_subscription>& s, std::unique_ptr<receiver> to) {
    const std::unique_lock lock(s->mutex);
    const bool ready = !s->queue.empty();
    if (!ready) return wait(id, s->arrival, std::move(to));
    to->deliver({});
}

// The waiting coroutine gets its answer at once. What was sent stays here until the backend is done with it.
void core::cancel(op_id id) {
    if (const auto w = waits_.find(id); w != waits_.end()) {
        w->second.on->leave(id);
        return end_wait(id, asio::error::operation_aborted);
    }
    const auto it = operations_.find(id);
    if (it == operations_.end() || !it->second.to) return;
    reply r;
    r.code = asio::error::operation_aborted;
    r.sent = it->second.issued && is_write(*it->second.what);
    const auto to = std::move(it->second.to);
    if (it->second.issued)
        it->second.abandoned = true;
    else
        operations_.erase(it);
    to->deliver(std::move(r));
}

// What was not sent yet waits for the next connection, from `now` on.
void core::begin_waiting_for_connection(time_point now) {
    expiring_.clear();
    for (const op_id id : outbox_) {
        const auto it = operations_.find(id);
        if (it == operations_.end() || it->second.until_certain || it->second.internal) continue;
        it->second.queued = std::max(it->second.queued, now);
        expiring_.push_back(id);
    }
}

// Requests that found no connection for too long.
void core::expire_queue(time_point now) {
    if (link_ == link_state::connected) return;
    while (!expiring_.empty()) {
        const op_id id = expiring_.front();
        const auto it = operations_.find(id);
        if (it != operations_.end() && it->second.queued + options_.connection_timeout() > now) break;
        expiring_.pop_front();
        fail(id, errc::not_connected);
    }
}

void core::on_reply(op_id id, reply&& r) noexcept {
    auto node = operations_.extract(id);
    if (node.empty()) return;
    operation& op = node.mapped();
    --issued_;
    if (something_to_send()) schedule_flush();  // there was no room for more
    if (!r.sent && r.code != zk_errc::throttled) again_refused_ = 0;
    if (watch_of(*op.what).path) registration_done(op, r.code);

    // The library may hold replies that came before we were stopped for a while; the lease was looked at when this
    // turn began (fact 25). Errors of writes are transactions too, but only success is beyond doubt.
    if (!r.code && is_write(*op.what)) {
        session_->lease.write_answered(op.sent, clock::now());
        lease_changed();
    } else if (!r.sent) {  // the answer is a server's
        session_->lease.answered(op.sent, clock::now());
    }
    if (auto* auth = std::get_if<add_auth_request>(&*op.what)) {
        if (r.code == condition::retryable && closing_ == closing::no && !op.abandoned) {
            auth->known = true;
            op.issued = false;
            operations_.insert(std::move(node));
            return send_again(id, r.code);
        }
        if (!r.code) {
            add_auth(auth_info(auth->scheme, auth->credential));
            if (op.unconfirmed) --unconfirmed_auths_;
        }
    }
    if (r.code == zk_errc::no_node && !servers_.chroot.empty() && about_root(*op.what))
        r.data = "the chroot \"" + servers_.chroot + "\" does not exist: create it with a client that has none";
    if (op.until_certain) {
        const bool unknown = r.sent || r.code == condition::retryable;
        if (unknown && link_ != link_state::expired && closing_ == closing::no && !session_->over) {
            op.issued = false;
            operations_.insert(std::move(node));
            return send_again(id, r.code);
        }
        if (r.code == zk_errc::no_node) {
            if (const auto missing = missing_node(*op.what, r))
                r.path = *missing;
            else
                r.code = {}, r.found = false;
        } else if (r.code && r.code != zk_errc::not_empty && r.code != condition::session_ended) {
            log("remove " + removed_path(*op.what) + ": " + r.code.message());  // whoever has given up a lock may not look
        }
    }
    finish(std::move(op), std::move(r));
    if (closing_ == closing::draining && issued_ <= own_reads_)
        asio::post(strand_, [self = shared_from_this()] { self->continue_close(); });
}

// --------------------------------------------------------------------------------------------------- watches

void core::registration_done(const operation& op, const std::error_code& code) {
    const watch_target target = watch_of(*op.what);
    const bool live = !code || (target.missing_node_counts && code == zk_errc::no_node);
    if (watches_.finish(*target.path, target.kind, live, op.abandoned ? nullptr : op.watch))
        send_watch_removal(*target.path, target.kind);
}

void core::send_watch_removal(const std::string& path, watch_kind kind) {
    if (link_ != link_state::connected || closing_ != closing::no) {
        // The server has forgotten it together with the connection; the library must not bring it back. Posted,
        // because this may be one of the library's callbacks.
        asio::post(strand_, [self = shared_from_this(), path, kind] {
            if (self->backend_ && self->link_ != link_state::connected) {
                self->backend_->forget_watch(path, kind);
                self->watches_.removed(path, kind, true);
            } else if (self->watches_.removed(path, kind, false)) {
                self->send_watch_removal(path, kind);
            }
        });
        return;
    }
    request_internally(remove_watch_request{path, kind}, [this, path, kind](reply&& r) {
        const bool gone = !r.code || r.code == zk_errc::no_watcher;
        if (r.code == condition::session_ended) return;
        if (watches_.removed(path, kind, gone)) send_watch_removal(path, kind);
    });
}

void core::leave_watch(const watch_ptr& w) {
    if (watches_.leave(*w)) send_watch_removal(w->path, w->kind);
}

void core::on_node_event(node_event e, std::string_view path) noexcept {
    for (const watch_ptr& w : watches_.fire(e, path)) fire(w->fired);
}

void core::on_log(std::string_view line) noexcept { log(line); }

// ------------------------------------------------------------------------------------------------- background

void core::run_in_background(asio::awaitable<void> task) {
    if (closing_ != closing::no || forked()) return;
    background_.emplace_back();
    const auto me = std::prev(background_.end());
    asio::co_spawn(strand_, std::move(task),
                   asio::bind_cancellation_slot(me->slot(), [self = shared_from_this(), me](std::exception_ptr failed) {
                       if (failed) try {
                               std::rethrow_exception(failed);
                           } catch (const std::exception& e) {
                               if (self->closing_ == closing::no) self->log(std::string("in the background: ") + e.what());
                           } catch (...) {
                               self->log("in the background: an unknown exception");
                           }
                       asio::post(self->strand_, [self, me] {
                           self->background_.erase(me);
                           if (self->closing_ == closing::draining) self->continue_close();
                       });
                   }));
}

}  // namespace zkasio::detail
