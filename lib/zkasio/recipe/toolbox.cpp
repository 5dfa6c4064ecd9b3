#include <zkasio/recipe/toolbox.hpp>

#include <zkasio/client_observer.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/operations_impl.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/handles/until_connected.hpp>
#include <zkasio/detail/requests/node_feeds.hpp>
#include <zkasio/detail/requests/validate.hpp>
#include <zkasio/recipe/detail/batched_gets.hpp>
#include <zkasio/recipe/detail/listener_of_view.hpp>
#include <zkasio/recipe/detail/orphans.hpp>

#include <asio/dispatch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace zkasio {

using namespace detail;

pending_create toolbox::start_create(std::string path, bytes data, create_options options, node_use use) const {
    command c = impl::prepared(on_, make_create(path, std::move(data).take(), options));
    c.of_contender = use == node_use::waits;
    return access::make<pending_create>(on_.core_, impl::start(on_, std::move(c)), on_.root_, "create",
                                        std::move(path));
}
pending_children toolbox::start_children(std::string path) const {
    command c = impl::prepared(on_, children_request{path});
    return access::make<pending_children>(on_.core_, impl::start(on_, std::move(c)), on_.root_, "children",
                                          std::move(path));
}
pending_data toolbox::start_get(std::string path) const {
    command c = impl::prepared(on_, get_request{path});
    return access::make<pending_data>(on_.core_, impl::start(on_, std::move(c)), on_.root_, "get", std::move(path));
}

std::vector<pending_data> toolbox::start_gets(std::vector<std::string> paths) const {
    std::vector<pending_data> all;
    batched_gets::reads call;
    for (std::string& path : paths) {
        const auto to = std::make_shared<kept_reply>();
        call.push_back({impl::prepared(on_, get_request{path}), to});
        all.push_back(access::make<pending_data>(on_.core_, to, on_.root_, "get", std::move(path)));
    }
    if (!all.empty())
        on_strand(on_.core_, [core = on_.core_, call = std::move(call)]() mutable {
            batched_gets::of(*core)->ask(std::move(call));
        });
    return all;
}

pending_data toolbox::start_exists(std::string path) const {
    command c = impl::prepared(on_, exists_request{path});
    return access::make<pending_data>(on_.core_, impl::start(on_, std::move(c)), on_.root_, "exists", std::move(path));
}
pending_watched_data toolbox::start_get_and_watch(std::string path) const {
    command c = impl::prepared(on_, get_request{path, true});
    const watch_ptr w = c.watch = watch_by(*c.what);
    return access::make<pending_watched_data>(on_.core_, impl::start(on_, std::move(c)), on_.root_, w, "get",
                                              std::move(path));
}
pending_watched_children toolbox::start_children_and_watch(std::string path) const {
    command c = impl::prepared(on_, children_request{path, true});
    const watch_ptr w = c.watch = watch_by(*c.what);
    return access::make<pending_watched_children>(on_.core_, impl::start(on_, std::move(c)), on_.root_, w, "children",
                                                  std::move(path));
}

pending_removal toolbox::ensure_removed(std::string path, std::vector<std::string> must_exist) const {
    kept_reply_ptr answer = impl::ensure_removed(on_, path, std::move(must_exist));
    return access::make<pending_removal>(on_.core_, std::move(answer), on_.root_, "remove", std::move(path));
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
    on_strand(core, [core, path = whole_path(std::move(path)), ask = std::move(ask)]() mutable {
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

toolbox toolbox::unrooted() const {
    toolbox whole = *this;
    whole.on_.root_ = nullptr;
    return whole;
}
std::string toolbox::whole_path(std::string path) const {
    return detail::whole_path(on_.root_, std::move(path));
}
std::string toolbox::shown_path(std::string path) const {
    return detail::shown_path(on_.root_, std::move(path));
}

acl toolbox::completed(acl given) const {
    if (on_.core_) on_.core_->complete(given);
    return given;
}

back_off toolbox::make_back_off() const { return access::make<back_off>(there(on_.core_, "make_back_off")); }

session_pace toolbox::make_session_pace() const { return access::make<session_pace>(on_.core_); }

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
    return connected_session(on_.core_, on_.root_, std::move(operation), std::move(path));
}

namespace {

asio::awaitable<session> pinned_session(core_ptr core, session_record_ptr record, view_root root) {
    co_return access::make<session>(std::move(core), std::move(record), root);
}

}  // namespace

asio::awaitable<session> toolbox::own_session(std::string operation, std::string path) const {
    if (on_.session_) return pinned_session(on_.core_, on_.session_, on_.root_);
    return current_session(std::move(operation), std::move(path));
}

node_feed toolbox::feed(std::string root, const std::shared_ptr<node_feed_listener>& to) const {
    const std::size_t above = there(on_.core_, "feed", root)->chroot_length() + size_of_root(on_.root_);
    validate(exists_request{root}, above, "watch");
    std::shared_ptr<node_feed_listener> told = to;
    if (on_.root_) told = std::make_shared<listener_of_view>(on_.root_, to);
    auto state = std::make_shared<feed_state>();
    state->root = whole_path(std::move(root));
    state->listener = told;
    state->wants_one_watch = told->wants_one_watch();
    on_.core_->requests().add_feed(state);
    return access::make<node_feed>(on_.core_, std::move(state), on_.root_, on_.root_ ? told : nullptr);
}

namespace {

// Keys of one view and of another contain the same path of different nodes.
std::string key_in_view(view_root root, std::string key) {
    if (root) key += '\0' + *root;  // no path has a NUL
    return key;
}

}  // namespace

std::shared_ptr<session_local> toolbox::local(const std::string& key,
                                              const std::function<std::shared_ptr<session_local>()>& make) const {
    there(on_.core_, "local");
    if (!on_.session_) throw error(errc::invalid_argument, "local", {}, "a client has no session of its own");
    if (!on_.root_) return on_.session_->local(key, make);
    return on_.session_->local(key_in_view(on_.root_, key), make);
}

contender_room toolbox::room_for_contender(const std::string& directory, std::size_t path_bytes) const {
    using room = ephemeral_budget::room;
    if (on_.root_) return unrooted().room_for_contender(whole_path(directory), path_bytes + size_of_root(on_.root_));
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
        .when_changed(whole_path(std::move(directory)), path_bytes + size_of_root(on_.root_), std::move(f));
}
std::size_t toolbox::room_for_claims(const std::string& directory, std::size_t path_bytes) const {
    if (on_.root_) return unrooted().room_for_claims(whole_path(directory), path_bytes + size_of_root(on_.root_));
    return there(on_.core_, "room_for_claims")->requests().ephemerals().for_claims(directory, path_bytes);
}
void toolbox::when_room_is_released(std::function<void()> f) const {
    there(on_.core_, "when_room_is_released")->requests().ephemerals().when_released(std::move(f));
}
void toolbox::now_holds(const std::string& path) const {
    if (on_.root_) return unrooted().now_holds(whole_path(path));
    request_table& requests = there(on_.core_, "now_holds")->requests();
    requests.ephemerals().now_holds(path);
    requests.tell_room();
}

void toolbox::is_gone(const std::string& path) const {
    if (on_.root_) return unrooted().is_gone(whole_path(path));
    request_table& requests = there(on_.core_, "is_gone")->requests();
    requests.ephemerals().heard_gone(path);
    requests.tell_room();
}

void toolbox::was_applied(std::string path) const {
    on_strand(there(on_.core_, "was_applied"),
              [c = on_.core_, path = whole_path(std::move(path))] { c->requests().was_applied(path); });
}

void toolbox::remove_orphans(std::string key, std::string directory,
                             std::function<bool(const std::string& name)> is_one) const {
    if (!on_.session_ || !on_.session_->resumed) return;
    key = key_in_view(on_.root_, std::move(key));
    begin_to_remove_orphans(on_.core_, access::make<session>(on_.core_, on_.session_, on_.root_), std::move(key),
                            std::move(directory), std::move(is_one));
}
asio::awaitable<std::optional<std::int64_t>> toolbox::orphan_at(std::string path) const {
    if (!on_.session_ || !on_.session_->resumed) return no_orphan();
    return find_orphan(on_.core_, access::make<session>(on_.core_, on_.session_, on_.root_), std::move(path));
}

void toolbox::run_in_background(asio::awaitable<void> task) const { impl::run_in_background(on_, std::move(task)); }

std::shared_ptr<const void> toolbox::begin_background_work() const {
    return there(on_.core_, "begin_background_work")->begin_work();
}

namespace {

// An observer is the client's: it is told whole paths.
template <class Report>
void tell(const core_ptr& core, view_root root, const Report& r) noexcept {
    if (!core) return;
    if (root) {
        Report whole = r;
        whole.path = whole_path(root, r.path);
        return tell(core, nullptr, whole);
    }
    if (core->strand().running_in_this_thread()) return core->telemetry().ended(r);  // most often; without a copy
    asio::dispatch(core->strand(), [core, r] { core->telemetry().ended(r); });
}

}  // namespace

void toolbox::report(const lock_wait_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
void toolbox::report(const lock_hold_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
void toolbox::report(const commit_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
void toolbox::report(const delivery_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
void toolbox::report(const barrier_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
void toolbox::report(const lock_stop_report& r) const noexcept { tell(on_.core_, on_.root_, r); }
bool toolbox::has_observer() const noexcept { return on_.core_ && on_.core_->observed(); }

}  // namespace zkasio
