#include <zkasio/watch_stream.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/until_connected.hpp>
#include <zkasio/session_local.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace zkasio {

using namespace detail;

namespace {

constexpr const char* operation = "add_watch";

[[noreturn]] void refuse(std::error_code why, const std::string& path) {
    reply r;
    r.code = why;
    throw_if_failed(r, operation, path);
    throw error(why, operation, path);
}

// A feed without reads: keeps what it is told until it is taken. Told on the strand; taken from any thread.
class event_queue final : public node_feed_listener, public session_local {
public:
    /// @param root of the view in whose paths it tells, see client::rooted().
    event_queue(core& of, feed_ptr feed, view_root root) : core_(of), feed_(std::move(feed)), root_(root) {}

    struct found {
        std::optional<watched_event> event;
        std::error_code failed;  // if there is no event
        one_shot_ptr arrival;    // if it has not failed either
    };
    found take() {
        const std::lock_guard lock(mutex_);
        found f;
        if (unread_.empty()) {
            f.failed = ended_ ? ended_ : std::exchange(refused_, {});
            f.arrival = next_arrival();
            return f;
        }
        f.event = std::move(unread_.front());
        unread_.pop_front();
        bytes_ -= size_of(*f.event);
        return f;
    }

    /// Whether a server has set the watch, or the reason why not; otherwise `arrival` tells.
    bool has_begun(found& f) {
        const std::lock_guard lock(mutex_);
        f.arrival = next_arrival();
        f.failed = ended_ ? ended_ : refused_;
        return begun_;
    }

    /// For good.
    void end(std::error_code why) {
        tell([&] {
            if (!ended_) ended_ = why;
        });
    }

private:
    void connected(bool by_one_watch) override {
        tell([&] {
            const bool was_refused = std::exchange(is_refused_, !by_one_watch);
            if (!by_one_watch && !was_refused) refused_ = zk_errc::unimplemented;
            if (!by_one_watch) return;
            refused_ = {};
            if (std::exchange(begun_, true)) look_again();
        });
    }
    void disconnected() override {}
    void closed(std::error_code why) override { end(why); }
    void session_over(std::error_code why) noexcept override {
        core_.requests().remove_feed(*feed_);  // otherwise each later connection would set the watch
        end(why);
    }
    void answered(node_read, const std::string&, std::error_code, node_answer) override {}
    void authenticated() override {
        tell([&] {
            if (begun_ && !is_refused_) look_again();
        });
    }
    void changed(node_change what, const std::string& path, std::int64_t zxid) override {
        tell([&] {
            // Without the watch, what happens to be heard by the one-shot watches of others is no stream.
            if (is_refused_ || needs_look()) return;
            watched_event told{static_cast<watched_change>(what), shown_path(root_, path), zxid};
            bytes_ += size_of(told);
            unread_.push_back(std::move(told));
            constexpr std::size_t most = 256 * 1024;
            if (bytes_ <= most) return;
            unread_.clear();
            bytes_ = 0;
            look_again();
        });
    }
    bool watches(node_read, const std::string&) const override { return false; }
    void for_each_watch(const std::function<void(node_read, const std::string&)>&) const override {}

    static std::size_t size_of(const watched_event& e) noexcept { return sizeof e + e.path.size(); }
    bool needs_look() const { return !unread_.empty() && unread_.back().what == watched_change::look_again; }
    void look_again() {
        if (needs_look()) return;
        unread_.push_back({watched_change::look_again, shown_path(root_, feed_->root), 0});
        bytes_ += size_of(unread_.back());
    }
    const one_shot_ptr& next_arrival() {
        if (!arrival_) arrival_ = std::make_shared<one_shot_state>();
        return arrival_;
    }
    template <class Change>
    void tell(Change change) {
        std::unique_lock lock(mutex_);
        if (ended_) return;
        change();
        const one_shot_ptr told = std::exchange(arrival_, nullptr);
        lock.unlock();
        if (told) core_.waits().fire(told);
    }

    core& core_;
    const feed_ptr feed_;
    const view_root root_;
    std::mutex mutex_;
    std::deque<watched_event> unread_;
    std::size_t bytes_ = 0;  // of these
    std::error_code refused_, ended_;
    bool begun_ = false, is_refused_ = false;
    one_shot_ptr arrival_;  // null: nobody waits
};

static_assert(static_cast<int>(watched_change::removed) == static_cast<int>(node_change::removed) &&
              static_cast<int>(watched_change::children_changed) == static_cast<int>(node_change::children_changed));

}  // namespace

struct watch_stream::use {
    use(core_ptr c, view_root root, const session_record_ptr& pinned, std::string path, watch_mode mode)
        : core(std::move(c)), heard(std::make_shared<event_queue>(*core, feed, root)) {
        if (root) shown = std::make_unique<const std::string>(path);
        feed->root = whole_path(root, std::move(path));
        feed->listener = heard;
        feed->wants_one_watch = feed->is_stream = true;
        feed->wants_recursive = mode == watch_mode::recursive;
        on_strand(core, [core = core, feed = feed, heard = heard, pinned] {
            if (pinned) pinned->add_local("add_watch " + std::to_string(core->next_id()), heard);
            core->requests().add_feed(feed, pinned.get());
        });
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    ~use() {
        on_strand(core, [core = core, feed = feed, heard = heard] { core->requests().remove_feed(*feed); });
    }

    static void check(const std::shared_ptr<use>& self) {
        if (!self) throw error(errc::invalid_argument, operation, {}, "this stream was moved from");
        if (self->core->forked()) throw error(errc::forked, operation, self->path());
    }
    const std::string& path() const noexcept { return shown ? *shown : feed->root; }
    asio::awaitable<void> until(one_shot_ptr arrival) const {
        const wait_end over = co_await wait_for(core, std::move(arrival));
        if (over.code) throw error(over.code, operation, path());
    }
    static asio::awaitable<void> begun(std::shared_ptr<use> self);
    static asio::awaitable<watched_event> next(std::shared_ptr<use> self);
    static asio::awaitable<void> close(std::shared_ptr<use> self);

    const core_ptr core;
    std::unique_ptr<const std::string> shown;  // the path in a view; null: the client itself
    const feed_ptr feed = std::make_shared<feed_state>();
    const std::shared_ptr<event_queue> heard;
};

asio::awaitable<void> watch_stream::use::begun(std::shared_ptr<use> self) {
    event_queue::found f;
    while (!self->heard->has_begun(f)) {
        if (f.failed) refuse(f.failed, self->path());
        co_await self->until(f.arrival);
    }
}

asio::awaitable<watched_event> watch_stream::use::next(std::shared_ptr<use> self) {
    for (;;) {
        check(self);
        event_queue::found f = self->heard->take();
        if (f.event) co_return std::move(*f.event);
        if (f.failed == zk_errc::unimplemented)
            throw error(f.failed, operation, self->path(),
                        "a server has refused it, or connections have ended when it was asked for");
        if (f.failed) refuse(f.failed, self->path());
        co_await self->until(std::move(f.arrival));
    }
}

// A server answers in order: the answer to a request that was sent after the removal says that the watch is gone. If
// the watch was asked for, and not answered, its removal is sent after the answer.
asio::awaitable<void> watch_stream::use::close(std::shared_ptr<use> self) {
    check(self);
    const core_ptr of = self->core;
    on_strand(of, [self] {
        self->core->requests().remove_feed(*self->feed);
        self->heard->end(errc::client_closed);
    });
    for (int answers = 0; answers < 2 && of->state() == session_state::connected; ++answers) {
        command fence(exists_request{"/"});
        reply r;
        co_await perform(of, fence, r);
        if (r.code == condition::cancelled) throw error(r.code, operation, self->path());
    }
}

asio::awaitable<watch_stream> operations::impl::add_watch(operations on, std::string path, watch_mode mode) {
    command c(add_watch_request{path, mode == watch_mode::recursive});
    prepare(on, c, operation);
    if (on.core_->forked()) throw error(errc::forked, operation, path);
    if (on.core_->options().reads_only()) refuse(zk_errc::not_read_only, path);
    boot_clock::time_point end = boot_clock::time_point::max();
    if (!on.patient_) end = boot_clock::after(on.core_->options().connection_timeout());
    const bool is_over = on.session_ && on.session_->over;
    if (!on.patient_ && !is_over) co_await until_connected(on.core_, operation, path);  // says why there is none
    watch_stream made = access::make<watch_stream>(
        std::make_shared<watch_stream::use>(on.core_, on.root_, on.session_, path, mode));
    const auto begin = [&made] { return watch_stream::use::begun(made.use_); };
    const bool has_begun = co_await run_with_deadline(end, begin);
    if (!has_begun) refuse(errc::not_connected, path);
    co_return made;
}

asio::awaitable<watched_event> watch_stream::next() const { return use::next(use_); }
asio::awaitable<void> watch_stream::close() const { return use::close(use_); }

const std::string& watch_stream::path() const noexcept {
    static const std::string none;
    return use_ ? use_->path() : none;
}

}  // namespace zkasio
