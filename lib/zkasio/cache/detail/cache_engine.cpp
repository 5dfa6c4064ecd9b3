#include <zkasio/cache/detail/cache_engine.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <cassert>

namespace zkasio::cache_detail {

namespace {

// Bounds what refused nodes cost the servers: there may be very many.
constexpr std::size_t most_refused_at_a_time = 100;

}  // namespace

cache_engine::cache_engine(const client& zk, std::string root, tree_scope scope, std::size_t most_reads,
                           std::shared_ptr<cache_board> board)
    : on_(zk),
      strand_(zk.get_executor()),
      root_(std::make_shared<const std::string>(root)),
      most_reads_(most_reads),
      wants_one_watch_(scope.depth > 0),
      board_(std::move(board)),
      stopped_(toolbox(zk).make_one_shot_event()),
      sync_(std::move(root), std::move(scope)),
      pauses_(toolbox(zk).make_back_off()),
      refusal_pauses_(toolbox(zk).make_refusal_back_off()),
      between_looks_(toolbox(zk).make_refusal_back_off()) {}

void cache_engine::begin(client zk) {
    asio::dispatch(strand_, [self = shared_from_this(), zk = std::move(zk)] {
        if (self->stopping_) return;
        try {
            self->feed_ = toolbox(zk).feed(*self->root_, self);
        } catch (const error& e) {
            self->board_->close(e.code());
        }
    });
}

// ------------------------------------------------------------------------------------------------ what is told

void cache_engine::connected(bool by_one_watch) {
    up_ = true;
    if (stopping_) return;
    sync_.connected(by_one_watch);
    work();
}

void cache_engine::disconnected() {
    up_ = leaving_ = false;
    to_leave_.clear();  // these watches are gone with the connection; for_each_watch() has named them
    if (stopping_) return end();
    sync_.disconnected();
    work();
}

void cache_engine::closed(std::error_code why) {
    up_ = false;
    sync_.disconnected();
    board_->close(why);
    end();
}

void cache_engine::answered(node_read what, const std::string& path, std::error_code code, node_answer answer) {
    if (stopping_) {
        const bool watched = !code || (what == node_read::stat && code == zk_errc::no_node);
        if (watched) to_leave_.emplace_back(what, path);
        return;
    }
    if (code != condition::retryable && !pausing_) pauses_.reset();
    decide([&] { sync_.answered(what, path, code, std::move(answer)); });
    work();
}

template <class Decision>
void cache_engine::decide(Decision d) {
    deciding_ = true;
    d();
    deciding_ = false;
}

void cache_engine::changed(node_change what, const std::string& path, std::int64_t) {
    if (stopping_) return;
    if (sync_.by_one_watch()) {
        // The servers tell of all nodes, at any depth.
        constexpr std::size_t many = 1000, times = 10;
        ++(sync_.is_too_deep(path) ? useless_events_ : wanted_events_);
        if (useless_events_ > many + times * wanted_events_) return do_without_one_watch();
    }
    sync_.changed(what, path);
    work();
}

void cache_engine::authenticated() {
    if (stopping_) return;
    sync_.authenticated();
    work();
}

// For good: another feed looks at all nodes, and watches each.
void cache_engine::do_without_one_watch() {
    wants_one_watch_ = up_ = false;
    feed_ = node_feed();
    sync_.disconnected();
    work();
    // Once the watch is gone: a feed of the same root would keep it.
    const pending_data fence = toolbox(on_).start_exists("/");
    fence.then([self = shared_from_this()] {
        if (self->stopping_) return;
        try {
            self->feed_ = toolbox(self->on_).feed(*self->root_, self);
        } catch (const error& e) {
            self->closed(e.code());
        }
    });
}

// ---------------------------------------------------------------------------------------------- what follows

void cache_engine::work() {
    send_reads();
    for (tree_sync::read& r : sync_.take_left()) to_leave_.emplace_back(r.what, std::move(r.path));
    if (!to_leave_.empty() && !leaving_) leave_some();
    if (sync_.put_off()) pause();
    pause_before_refused();
    ready_ = ready_ || sync_.current();
    if (ready_)
        publish_soon();
    else
        sync_.take_deltas();  // readers begin with the whole tree
}

// Sends enough reads at a time to keep the servers busy, but not all: other requests of this client would have to wait
// for all of them.
void cache_engine::send_reads() {
    while (sync_.under_way() < most_reads_) {
        auto next = sync_.next_read();
        if (!next) return;
        feed_.read(next->what, std::move(next->path));
    }
}

void cache_engine::pause() {
    if (pausing_) return;
    pauses_.then(strand_, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->stopping_) return;
        self->pausing_ = false;
        self->sync_.resume();
        self->work();
    });
    pausing_ = true;
}

// C9. The pause before each round through the refused nodes is longer than the one before, unless a permission has
// changed: then others may have changed, too. Within a round all pauses are short.
void cache_engine::pause_before_refused() {
    const bool news = sync_.take_other_permissions();
    if (!sync_.has_refused()) {
        if (std::exchange(pausing_before_refused_, false)) end_refusal_pauses();
        looks_soon_ = false;
        return;
    }
    if (news && !looks_soon_) {
        looks_soon_ = true;
        pausing_before_refused_ = false;
        end_refusal_pauses();
    }
    if (pausing_before_refused_) return;
    if (!refused_round_over_) between_looks_ = toolbox(on_).make_refusal_back_off();  // the first pause again
    back_off& pauses = refused_round_over_ ? refusal_pauses_ : between_looks_;
    pauses.then(strand_, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || self->stopping_) return;
        self->pausing_before_refused_ = self->looks_soon_ = false;
        self->refused_round_over_ = self->sync_.look_at_refused(most_refused_at_a_time);
        self->work();
    });
    pausing_before_refused_ = true;
}

void cache_engine::end_refusal_pauses() {
    refusal_pauses_ = toolbox(on_).make_refusal_back_off();
    between_looks_ = toolbox(on_).make_refusal_back_off();
}

// All changes of one turn are published together.
void cache_engine::publish_soon() {
    if (publishing_ || !sync_.dirty()) return;
    asio::post(strand_, [self = shared_from_this()] {
        self->publishing_ = false;
        if (!self->stopping_) self->publish();
    });
    publishing_ = true;
}

void cache_engine::publish() {
    assert(ready_ && !stopping_);
    sync_.take_dirty();
    snapshot now;
    now.root_path = root_;
    now.root = sync_.tree().root();
    now.size = sync_.tree().size();
    now.ready = true;
    now.current = sync_.current();
    board_->publish(std::move(now), sync_.take_deltas());
}

// -------------------------------------------------------------------------------------------------- the end

void cache_engine::stop() noexcept {
    asio::dispatch(strand_, [self = shared_from_this()] { self->stop_now(); });
}

void cache_engine::stop_now() {
    if (deciding_) return asio::post(strand_, [self = shared_from_this()] { self->stop_now(); });
    if (stopping_) return;
    board_->close(errc::client_closed, "this cache was closed");
    stopping_ = true;
    if (!up_ && !feed_.waits()) return end();
    begin_to_leave();
}

void cache_engine::begin_to_leave() {
    assert(stopping_);
    work_ = toolbox(on_).begin_background_work();
    sync_.for_each_watch([this](node_read what, const std::string& path) { to_leave_.emplace_back(what, path); });
    const bool by_one_watch = !up_ || sync_.by_one_watch();
    if (by_one_watch) feed_ = node_feed();  // which removes it, when it is there
    sync_ = tree_sync(*root_, tree_scope());  // from now on watches() is false, as node_feed::leave() requires
    leaving_ = true;
    ++chain_;
    // Reads that are under way set watches, too.
    when_answered(by_one_watch ? &cache_engine::leave_later : &cache_engine::leave_some);
}

// The removal of a watch that was not there yet has been sent by now.
void cache_engine::leave_later() { when_answered(&cache_engine::leave_some); }

// Calls `next` when all requests that were sent before have been answered: servers answer in order.
void cache_engine::when_answered(void (cache_engine::*next)()) {
    const pending_data fence = toolbox(on_).start_exists("/");
    fence.then([self = shared_from_this(), next, chain = chain_] {
        // Otherwise the connection and the watches are gone, or this fence belongs to removals sent before stop_now().
        if (self->leaving_ && self->chain_ == chain) (*self.*next)();
    });
}

// In portions: there may be very many watches, and each removal is a request.
void cache_engine::leave_some() {
    constexpr std::size_t at_a_time = 500;
    assert((up_ || to_leave_.empty()) && "without a connection, there are no watches");
    leaving_ = !to_leave_.empty();
    if (!leaving_) return stopping_ ? end() : void();
    for (std::size_t i = 0; i < at_a_time && !to_leave_.empty(); ++i) {
        feed_.leave(to_leave_.back().first, to_leave_.back().second);
        to_leave_.pop_back();
    }
    when_answered(&cache_engine::leave_some);
}

void cache_engine::end() {
    assert(stopping_ || !up_);
    leaving_ = false;
    to_leave_.clear();
    feed_ = node_feed();
    work_.reset();
    pauses_ = toolbox(on_).make_back_off();  // a pending pause would keep the loop running
    end_refusal_pauses();
    stopped_.fire();
}

}  // namespace zkasio::cache_detail
