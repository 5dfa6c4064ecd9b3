#include <zkasio/recipe/toolbox.hpp>

#include <zkasio/client_observer.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/until_connected.hpp>
#include <zkasio/detail/requests/node_feeds.hpp>
#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/recipe/detail/orphans.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace zkasio {

using namespace detail;

pending_create toolbox::start_create(std::string path, bytes data, create_options options, node_use use) const {
    command c = impl::prepared(on_, make_create(path, std::move(data).take(), options));
    c.of_contender = use == node_use::waits;
    return access::make<pending_create>(on_.core_, impl::start(on_, std::move(c)), "create", std::move(path));
}
pending_children toolbox::start_children(std::string path) const {
    command c = impl::prepared(on_, children_request{path});
    return access::make<pending_children>(on_.core_, impl::start(on_, std::move(c)), "children", std::move(path));
}
pending_data toolbox::start_get(std::string path) const {
    command c = impl::prepared(on_, get_request{path});
    return access::make<pending_data>(on_.core_, impl::start(on_, std::move(c)), "get", std::move(path));
}

namespace {

using kept_replies = std::vector<kept_reply_ptr>;

bool is_lost(const reply& r) noexcept { return r.code == zk_errc::connection_loss; }

// In a later turn, in which it is known that the connection is lost. A server that does not know the request of a batch
// hangs up behind its answer: the first attempt may be lost with it.
void ask_again(const core_ptr& on, command get, kept_reply_ptr to, int attempts) {
    asio::post(on->strand(), [on, get = std::move(get), to = std::move(to), attempts] {
        const auto asked = std::make_shared<kept_reply>();
        on->requests().submit(command(get), asked, request_table::repeat::never);
        on->waits().then(asked->answered, [&c = *on, &r = asked->reply, get, to, attempts] {
            if (is_lost(r) && attempts > 1) return ask_again(c.shared_from_this(), get, to, attempts - 1);
            // Lost first, on another session: a request of no certain session can be sent again.
            if (r.code == errc::session_expired && !get.pinned) r.code = zk_errc::connection_loss;
            to->reply = std::move(r);
            c.waits().fire(answer_of(to));
        });
    });
}

// The answer to all reads, or the reason why there is none, is that of each.
void distribute(core& on, reply& r, const kept_replies& to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        reply& one = to[i]->reply;
        one.code = r.code;
        one.sent = r.sent;
        if (!r.code && i < r.results.size()) {
            one.code = r.results[i].code;
            one.data = std::move(r.results[i].data);
            one.stat = r.results[i].stat.value_or(node_stat());
        } else if (r.code) {
            one.data = r.data;  // the hint of the error
        }
        on.waits().fire(answer_of(to[i]));
    }
}

// The reads of start_gets() of one session, by all recipes, and what its servers have taught about them. A ping waits
// for its answer behind the answers under way, and the C library counts no part of these as a sign of life: so few are
// under way, and they are as large as the size of the nodes allows. On the strand.
class batched_gets final : public session_local {
public:
    /// All wait in one line: nobody stands in it for long, and a lost connection sends no flood of them.
    static constexpr std::size_t most_of_a_call = 256;

    static std::shared_ptr<batched_gets> of(core& on) {
        constexpr const char* key = "batches of start_gets()";
        session_record& session = *on.sessions().current();
        if (const auto it = session.locals.find(key); it != session.locals.end())
            if (const auto found = it->second.lock()) return std::static_pointer_cast<batched_gets>(found);
        const auto made = std::make_shared<batched_gets>();
        session.add_local(key, made);
        on.waits().then(*session.ended, [made] {});  // the session keeps it
        return made;
    }

    void add(command get, kept_reply_ptr to) { waiting_.emplace_back(std::move(get), std::move(to)); }

    static void send(const std::shared_ptr<batched_gets>& self, core& on) {
        while (!self->waiting_.empty() && (self->under_way_ < most_under_way || !self->is_bounded(on)))
            self->send_some(self, on);
    }

private:
    static constexpr std::size_t fewest = 3, most_at_first = 8, most = 32;
    static constexpr std::size_t most_bytes_of_paths = 64 * 1024, small_answer = 64 * 1024, large_answer = 256 * 1024;
    static constexpr int most_under_way = 2, enough_lost = 2;
    static constexpr std::chrono::minutes pause{10};  // the connections may have broken by chance

    void session_over(std::error_code) noexcept override {}
    void loop_over() noexcept override { waiting_.clear(); }

    // Without a connection all wait in the table, each for as long as it may.
    bool is_bounded(const core& on) const { return on.state() == session_state::connected && !are_single(on); }
    bool are_single(const core& on) const { return on.options().reads_only() || is_paused(); }
    bool is_paused() const { return boot_clock::now() < single_until_; }

    void send_some(const std::shared_ptr<batched_gets>& self, core& on) {
        std::vector<command> gets;
        kept_replies to;
        const session_record_ptr pinned = waiting_.front().first.pinned;
        const bool patient = waiting_.front().first.patient;
        for (std::size_t bytes = 0; !waiting_.empty() && gets.size() < most_in_batch_;) {
            auto& [get, its] = waiting_.front();
            bytes += path_of(*get.what).size() + on.chroot_length();
            if (get.pinned != pinned || get.patient != patient) break;
            if (!gets.empty() && bytes > most_bytes_of_paths) break;
            gets.push_back(std::move(get));
            to.push_back(std::move(its));
            waiting_.pop_front();
        }
        const bool together = gets.size() >= fewest && !are_single(on);
        if (together) return ask_together(self, on, std::move(gets), std::move(to));
        const bool may_be_cut = lost_ > 0 || is_paused();  // with the end of a connection that a batch has ended
        for (std::size_t i = 0; i < gets.size(); ++i) {
            if (may_be_cut)
                ask_again(on.shared_from_this(), std::move(gets[i]), to[i], 2);
            else
                on.requests().submit(std::move(gets[i]), to[i], request_table::repeat::never);
        }
    }

    void ask_together(const std::shared_ptr<batched_gets>& self, core& on, std::vector<command> gets,
                      kept_replies to) {
        multi_read_request all;
        for (const command& c : gets) all.reads.emplace_back(std::get<get_request>(*c.what));
        command together(std::move(all));
        together.pinned = gets.front().pinned;
        together.patient = gets.front().patient;
        const auto batch = std::make_shared<kept_reply>();
        ++under_way_;
        on.requests().submit(std::move(together), batch, request_table::repeat::never);
        on.waits().then(batch->answered, [self, &on, &r = batch->reply, gets = std::move(gets),
                                          to = std::move(to)]() mutable {
            --self->under_way_;
            self->learn(on, r, to.size());
            // In a later turn, in which it is known whether the connection is lost.
            if (!self->waiting_.empty())
                asio::post(on.strand(), [self, c = on.shared_from_this()] { send(self, *c); });
            if (r.code != zk_errc::unimplemented && !is_lost(r)) return distribute(on, r, to);
            for (std::size_t i = 0; i < gets.size(); ++i)
                ask_again(on.shared_from_this(), std::move(gets[i]), to[i], 2);
        });
    }

    void learn(core& on, const reply& r, std::size_t n) {
        if (is_lost(r)) return learn_loss(on, n);
        if (r.code == zk_errc::unimplemented) single_until_ = boot_clock::now() + pause;
        if (r.code) return;
        lost_ = 0;
        answered_ = std::max(answered_, n);
        const std::size_t bytes = size_of(r);
        if (bytes > large_answer && n <= most_in_batch_)  // not again for one that was sent before
            halve();
        else if (bytes < small_answer && n == most_in_batch_ && boot_clock::now() >= larger_from_)
            most_in_batch_ = std::min(2 * most_in_batch_, most);
    }

    // There are servers that hang up at such a request. Several batches that are lost with one connection count once.
    void learn_loss(core& on, std::size_t n) {
        const std::uint64_t connection = on.requests().feeds().connection();
        if (std::exchange(lost_with_, connection) == connection) return;
        const bool may_be_too_large = n > answered_;
        if (may_be_too_large) {
            halve();
            larger_from_ = boot_clock::now() + pause;
        }
        if (++lost_ < enough_lost) return;
        lost_ = 0;
        answered_ = 0;
        single_until_ = boot_clock::now() + pause;
    }
    void halve() {
        if (most_in_batch_ / 2 >= fewest)
            most_in_batch_ /= 2;
        else  // of large nodes, more are under way one by one
            single_until_ = boot_clock::now() + pause;
    }

    std::deque<std::pair<command, kept_reply_ptr>> waiting_;
    int under_way_ = 0;                          // batches
    std::size_t most_in_batch_ = most_at_first;  // nodes
    std::size_t answered_ = 0;                   // the largest one
    int lost_ = 0;                 // connections with a batch, none of which was answered since
    std::uint64_t lost_with_ = 0;  // the connection
    boot_clock::time_point single_until_{}, larger_from_{};
};

}  // namespace

std::vector<pending_data> toolbox::start_gets(std::vector<std::string> paths) const {
    std::vector<pending_data> all;
    if (paths.size() > batched_gets::most_of_a_call) {
        for (std::string& path : paths) all.push_back(start_get(std::move(path)));
        return all;
    }
    std::vector<command> gets;
    kept_replies to;
    for (std::string& path : paths) {
        gets.push_back(impl::prepared(on_, get_request{path}));
        to.push_back(std::make_shared<kept_reply>());
        all.push_back(access::make<pending_data>(on_.core_, to.back(), "get", std::move(path)));
    }
    if (!all.empty())
        on_strand(on_.core_, [core = on_.core_, gets = std::move(gets), to = std::move(to)]() mutable {
            const auto batches = batched_gets::of(*core);
            for (std::size_t i = 0; i < gets.size(); ++i) batches->add(std::move(gets[i]), std::move(to[i]));
            batched_gets::send(batches, *core);
        });
    return all;
}

pending_data toolbox::start_exists(std::string path) const {
    command c = impl::prepared(on_, exists_request{path});
    return access::make<pending_data>(on_.core_, impl::start(on_, std::move(c)), "exists", std::move(path));
}
pending_watched_data toolbox::start_get_and_watch(std::string path) const {
    command c = impl::prepared(on_, get_request{path, true});
    const watch_ptr w = c.watch = watch_by(*c.what);
    return access::make<pending_watched_data>(on_.core_, impl::start(on_, std::move(c)), w, "get", std::move(path));
}
pending_watched_children toolbox::start_children_and_watch(std::string path) const {
    command c = impl::prepared(on_, children_request{path, true});
    const watch_ptr w = c.watch = watch_by(*c.what);
    return access::make<pending_watched_children>(on_.core_, impl::start(on_, std::move(c)), w, "children",
                                                  std::move(path));
}

pending_removal toolbox::ensure_removed(std::string path, std::vector<std::string> must_exist) const {
    kept_reply_ptr answer = impl::ensure_removed(on_, path, std::move(must_exist));
    return access::make<pending_removal>(on_.core_, std::move(answer), "remove", std::move(path));
}

namespace {

asio::awaitable<void> try_to_remove(std::function<asio::awaitable<void>()> remove,
                                    std::function<void(std::error_code)> ended) {
    std::error_code how;
    std::exception_ptr failed;
    try {
        co_await remove();
    } catch (const std::system_error& e) {
        how = e.code();
        const bool is_told = how == zk_errc::no_auth || how == condition::retryable ||
                             how == condition::session_ended || how == condition::cancelled;
        if (!is_told) failed = std::current_exception();
    } catch (...) {
        failed = std::current_exception();
    }
    ended(how);
    if (failed) std::rethrow_exception(failed);  // so that it is logged
}

}  // namespace

void toolbox::remove_when_allowed(std::string path, std::function<asio::awaitable<void>()> remove) const {
    const core_ptr core = there(on_.core_, "remove_when_allowed", path);
    if (!remove) throw error(errc::invalid_argument, "remove_when_allowed", path, "the removal is empty");
    auto ask = [core, remove = std::move(remove)](std::function<void(std::error_code)> ended) {
        core->run_until_closed(try_to_remove(remove, std::move(ended)));
    };
    on_strand(core, [core, path = std::move(path), ask = std::move(ask)]() mutable {
        core->requests().ask_later(std::move(path), std::move(ask));
    });
}

asio::awaitable<std::optional<created>> toolbox::find_protected(std::string parent, std::string protection_id) const {
    return impl::find_protected(on_, std::move(parent), std::move(protection_id));
}
void toolbox::ensure_protected_removed(std::string parent, std::string protection_id) const {
    impl::ensure_protected_removed(on_, std::move(parent), std::move(protection_id));
}
asio::awaitable<std::multimap<std::string, std::string>> toolbox::find_all_protected(
    std::string parent, std::vector<std::string> ids) const {
    return impl::find_all_protected(on_, std::move(parent), std::move(ids));
}
asio::awaitable<std::vector<step_result>> toolbox::multi_behind(std::vector<std::string> checked, transaction steps,
                                                                std::string operation) const {
    return impl::multi(on_, std::move(checked), std::move(steps), std::move(operation));
}

acl toolbox::completed(acl given) const {
    if (on_.core_) on_.core_->complete(given);
    return given;
}

back_off toolbox::make_back_off() const { return access::make<back_off>(there(on_.core_, "make_back_off")); }

back_off toolbox::make_refusal_back_off() const {
    return access::make<back_off>(there(on_.core_, "make_back_off"),
                                  retry_policy::exponential(std::chrono::seconds(1), std::chrono::minutes(5)));
}

one_shot_event toolbox::make_one_shot_event() const {
    return access::make<one_shot_event>(there(on_.core_, "make_one_shot_event"));
}

asio::awaitable<void> toolbox::connected(std::string operation, std::string path) const {
    return until_connected(on_.core_, std::move(operation), std::move(path));
}
asio::awaitable<session> toolbox::current_session(std::string operation, std::string path) const {
    return connected_session(on_.core_, std::move(operation), std::move(path));
}

namespace {

asio::awaitable<session> pinned_session(core_ptr core, session_record_ptr record) {
    co_return access::make<session>(std::move(core), std::move(record));
}

}  // namespace

asio::awaitable<session> toolbox::own_session(std::string operation, std::string path) const {
    if (on_.session_) return pinned_session(on_.core_, on_.session_);
    return current_session(std::move(operation), std::move(path));
}

node_feed toolbox::feed(std::string root, const std::shared_ptr<node_feed_listener>& to) const {
    validate(exists_request{root}, there(on_.core_, "feed", root)->chroot_length(), "watch");
    auto state = std::make_shared<feed_state>();
    state->root = std::move(root);
    state->listener = to;
    state->wants_one_watch = to->wants_one_watch();
    on_.core_->requests().add_feed(state);
    return access::make<node_feed>(on_.core_, std::move(state));
}

std::shared_ptr<session_local> toolbox::local(const std::string& key,
                                              const std::function<std::shared_ptr<session_local>()>& make) const {
    there(on_.core_, "local");
    if (!on_.session_) throw error(errc::invalid_argument, "local", {}, "a client has no session of its own");
    const auto& locals = on_.session_->locals;
    if (const auto it = locals.find(key); it != locals.end())
        if (auto found = it->second.lock()) return found;
    auto made = make();  // may call local() for another key, which changes `locals`
    on_.session_->add_local(key, made);
    return made;
}

contender_room toolbox::room_for_contender(const std::string& directory, std::size_t path_bytes) const {
    using room = ephemeral_budget::room;
    switch (there(on_.core_, "room_for_contender")->requests().ephemerals().for_contender(directory, path_bytes)) {
        case room::now: return contender_room::now;
        case room::later: return contender_room::later;
        case room::never: break;
    }
    return contender_room::never;
}
void toolbox::when_room_changes(std::string directory, std::size_t path_bytes, std::function<void()> f) const {
    there(on_.core_, "when_room_changes")
        ->requests()
        .ephemerals()
        .when_changed(std::move(directory), path_bytes, std::move(f));
}
std::size_t toolbox::room_for_claims(const std::string& directory, std::size_t path_bytes) const {
    return there(on_.core_, "room_for_claims")->requests().ephemerals().for_claims(directory, path_bytes);
}
void toolbox::when_room_is_released(std::function<void()> f) const {
    there(on_.core_, "when_room_is_released")->requests().ephemerals().when_released(std::move(f));
}
void toolbox::now_holds(const std::string& path) const {
    request_table& requests = there(on_.core_, "now_holds")->requests();
    requests.ephemerals().now_holds(path);
    requests.tell_room();
}

void toolbox::is_gone(const std::string& path) const {
    request_table& requests = there(on_.core_, "is_gone")->requests();
    requests.ephemerals().heard_gone(path);
    requests.tell_room();
}

void toolbox::was_applied(std::string path) const {
    on_strand(there(on_.core_, "was_applied"),
              [c = on_.core_, path = std::move(path)] { c->requests().was_applied(path); });
}

void toolbox::remove_orphans(std::string key, std::string directory,
                             std::function<bool(const std::string& name)> is_one) const {
    if (!on_.session_ || !on_.session_->resumed) return;
    begin_to_remove_orphans(on_.core_, access::make<session>(on_.core_, on_.session_), std::move(key),
                            std::move(directory), std::move(is_one));
}
asio::awaitable<std::optional<std::int64_t>> toolbox::orphan_at(std::string path) const {
    if (!on_.session_ || !on_.session_->resumed) return no_orphan();
    return find_orphan(on_.core_, access::make<session>(on_.core_, on_.session_), std::move(path));
}

void toolbox::run_in_background(asio::awaitable<void> task) const { impl::run_in_background(on_, std::move(task)); }

std::shared_ptr<const void> toolbox::begin_background_work() const {
    return there(on_.core_, "begin_background_work")->begin_work();
}

namespace {

template <class Report>
void tell(const core_ptr& core, const Report& r) noexcept {
    if (!core) return;
    if (core->strand().running_in_this_thread()) return core->telemetry().ended(r);  // most often; without a copy
    asio::dispatch(core->strand(), [core, r] { core->telemetry().ended(r); });
}

}  // namespace

void toolbox::report(const lock_wait_report& r) const noexcept { tell(on_.core_, r); }
void toolbox::report(const lock_hold_report& r) const noexcept { tell(on_.core_, r); }
void toolbox::report(const commit_report& r) const noexcept { tell(on_.core_, r); }
void toolbox::report(const delivery_report& r) const noexcept { tell(on_.core_, r); }
void toolbox::report(const barrier_report& r) const noexcept { tell(on_.core_, r); }
void toolbox::report(const lock_stop_report& r) const noexcept { tell(on_.core_, r); }
bool toolbox::has_observer() const noexcept { return on_.core_ && on_.core_->observed(); }

}  // namespace zkasio
