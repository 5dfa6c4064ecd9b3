#include <zkasio/locks/semaphore.hpp>

#include <zkasio/locks/detail/acquire.hpp>
#include <zkasio/locks/detail/contenders.hpp>
#include <zkasio/locks/detail/guards_in_the_way.hpp>
#include <zkasio/locks/detail/in_view.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/nodes_claim.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <string_view>
#include <unordered_set>

namespace zkasio {

using namespace lock_detail;

permits permits::fixed(int n) { return {n, {}}; }

permits permits::counted_by(std::string path) {
    require_path("semaphore", path);
    return {0, std::move(path)};
}

namespace {

using permit_nodes = std::vector<owned_node>;

constexpr int most_permits = 10'000;  // in one request: each permit is a node

queue_names lock_names(const std::string& path) {
    return {name_scheme::curator(), "lock-", {}, join_path(path, "locks")};
}
queue_names permit_names(const std::string& path) {
    return {name_scheme::curator(), permit_marker, {}, join_path(path, "leases")};
}

// Curator's SharedCount: an int, the highest byte first.
int count_in(const std::string& data, const std::string& path) {
    if (data.size() != 4) throw error(errc::invalid_argument, "semaphore", path, "its data is no count of 4 bytes");
    std::uint32_t n = 0;
    for (const char byte : data) n = n << 8 | static_cast<unsigned char>(byte);
    return static_cast<int>(n);
}

// The event fires on a change of `changes`, while the caller keeps `changes`. `told`, if any, is set first.
one_shot_event fired_by(const session& on, const std::shared_ptr<watch>& changes,
                        std::shared_ptr<std::atomic<bool>> told = nullptr) {
    const one_shot_event changed = toolbox(on).make_one_shot_event();
    auto tell = [changed, told = std::move(told)](std::error_code, node_change) {
        if (told) told->store(true);
        changed.fire();
    };
    asio::dispatch(on.get_executor(), [changes, tell = std::move(tell)] { changes->then(tell); });
    return changed;
}

// The number of permits, and a watch that fires when the number may have changed.
class limit {
public:
    limit(session on, std::string path, permits max)
        : on_(std::move(on)), path_(std::move(path)), max_(std::move(max)) {}

    // The number of permits, not older than a listing whose answer came before this call. The node is read at first and
    // after a change: if the number changed before that answer, told_ has been set on the strand, even if the coroutine
    // that awaits the listing resumes later.
    asio::awaitable<int> read() {
        if (max_.path().empty()) co_return max_.number();
        if (!fresh_ || told_->load()) {
            watched<node_data> seen = co_await watched_number();
            count_ = count_in(seen.value.data, max_.path());
            watch_ = std::make_shared<watch>(std::move(seen.changes));
            told_ = std::make_shared<std::atomic<bool>>(false);
            changed_.emplace(fired_by(on_, watch_, told_));
            fresh_ = true;
        }
        assert(watch_ && changed_ && told_ && "a limit that is up to date has a watch");
        co_return count_;
    }

    // Completes when the children or the limit have changed. @param children null: only the limit.
    asio::awaitable<void> changed_or(const watch* children) {
        if (max_.path().empty()) {
            co_await children->changed();
            co_return;
        }
        if (!children) {
            co_await changed_->wait();
            fresh_ = false;
            co_return;
        }
        std::function<asio::awaitable<void>()> body = [&]() -> asio::awaitable<void> { co_await children->changed(); };
        fresh_ = co_await changed_->run_until(std::move(body));
    }

private:
    asio::awaitable<watched<node_data>> watched_number() {
        try {
            co_return co_await on_.get_and_watch(max_.path());
        } catch (const error& e) {
            if (e.code() != zk_errc::no_node) throw;
            throw error(e.code(), "acquire", path_, max_.path() + " has the number of its permits");
        }
    }

    session on_;
    const std::string path_;  // of the semaphore
    permits max_;
    std::shared_ptr<watch> watch_;
    std::optional<one_shot_event> changed_;
    std::shared_ptr<std::atomic<bool>> told_;  // the watch has fired
    int count_ = 0;
    bool fresh_ = false;
};

// Creates the nodes of `n` leases. Nothing when the directory is missing, the server refuses for a while, or a create
// had no effect after its answer was lost: all nodes that were created are then removed.
asio::awaitable<std::optional<permit_nodes>> create_permits(session on, std::string directory,
                                                            semaphore_options options, int n, back_off& pauses) {
    permit_nodes nodes;
    nodes.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) nodes.emplace_back(on, directory, permit_marker, options.data(), options.acl());
    bool all = true, no_directory = false, refused = false;
    for (owned_node& node : nodes) {
        try {
            const bool exists = co_await node.created();
            all = all && exists;
        } catch (const error& e) {
            if ((e.code() != zk_errc::no_node && e.code() != condition::retryable) || e.hung_up()) throw;
            (e.code() == zk_errc::no_node ? no_directory : refused) = true;
        }
    }
    if (refused || !all)
        co_await pauses.pause();
    else
        pauses.reset();
    if (no_directory) co_await make_directory(on, directory, options.acl());
    std::optional<permit_nodes> result;
    if (all && !no_directory && !refused) result.emplace(std::move(nodes));
    co_return result;
}

bool is_permit(const std::string& name) { return sequence_of(name, permit_marker).has_value(); }

// In time proportional to both: a request for many permits looks at many leases, after each release.
bool has_all(const std::vector<std::string>& names, const permit_nodes& nodes) {
    const std::unordered_set<std::string_view> there(names.begin(), names.end());
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const owned_node& node) { return there.contains(node_name(node.path())); });
}

std::vector<std::string> paths_of(const permit_nodes& nodes) {
    std::vector<std::string> paths;
    for (const owned_node& node : nodes) paths.push_back(node.path());
    return paths;
}

// The paths of the nodes in `directory`, but for `own`.
std::vector<std::string> without(const std::vector<std::string>& own, const std::string& directory,
                                 const std::vector<std::string>& names) {
    const std::unordered_set<std::string_view> excluded(own.begin(), own.end());
    std::vector<std::string> others;
    for (const std::string& name : names) {
        std::string path = join_path(directory, name);
        if (!excluded.contains(path)) others.push_back(std::move(path));
    }
    return others;
}

// As changed_or(). False: an operator has deleted the node of this request's turn. Then another request is being
// served, too, and each would wait for the leases of the other.
asio::awaitable<bool> wait_in_turn(limit& most, const watch* children, const lock_claim& place) {
    const session_hold& turn = place.hold();
    if (turn.reason() == loss_reason::none) {
        std::function<asio::awaitable<void>()> wait = [&]() -> asio::awaitable<void> {
            co_await most.changed_or(children);
        };
        bool lost = false;
        try {
            co_await turn.run(std::move(wait));
        } catch (const std::system_error& e) {
            lost = e.code() == condition::cancelled && turn.reason() != loss_reason::none;
            if (!lost) throw;
        }
        if (!lost) co_return true;
    }
    if (turn.reason() == loss_reason::node_deleted) co_return false;
    // A stall or a cut has ended the hold, but not the turn, which ends with its node. Any other loss throws here.
    const session on = place.on().patient();
    watched<std::optional<node_stat>> node = co_await on.exists_and_watch(place.paths().front());
    if (!node.value) co_return false;
    const auto watching = std::make_shared<watch>(std::move(node.changes));
    const one_shot_event changed = fired_by(place.on(), watching);
    std::function<asio::awaitable<void>()> wait = [&]() -> asio::awaitable<void> {
        co_await most.changed_or(children);
    };
    co_await changed.run_until(std::move(wait));
    co_return true;
}

// Called while `locks` is held. Returns the leases of this request when there are no more leases than permits. Nothing:
// there are not enough permits, or `turn` was lost.
// @param bodies set if only bodies under permits that this session has lost are in the way, which may run for long: the
// turn is to be given up until the event.
asio::awaitable<std::optional<permit_nodes>> wait_for_permits(session on, std::string path, permits max,
                                                              semaphore_options options, int n,
                                                              if_contended when_contended, const lock_claim& turn,
                                                              std::optional<one_shot_event>& bodies) {
    const std::string directory = join_path(path, "leases");
    const boot_clock::time_point asked = boot_clock::now();
    limit most(on, path, max);
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        // Below `n` permits, no lease node is created: there may never be as many permits.
        for (int permitted = co_await most.read(); permitted < n; permitted = co_await most.read()) {
            if (when_contended == if_contended::give_up) co_return std::nullopt;
            const bool in_turn = co_await wait_in_turn(most, nullptr, turn);
            if (!in_turn) co_return std::nullopt;
        }
        std::optional<permit_nodes> nodes = co_await create_permits(on, directory, options, n, pauses);
        if (!nodes) continue;
        for (;;) {
            const auto seen = co_await if_exists(on.children_and_watch(directory));
            if (!seen) break;  // the directory was removed with all leases: start over
            const auto& names = seen->value.names;
            if (!has_all(names, *nodes)) break;  // an operator has deleted a lease: start over
            const int permitted = co_await most.read();
            const auto unfinished = co_await unfinished_permits::now(on, directory);
            const auto most_leases = static_cast<std::size_t>(std::max(permitted, 0));
            if (names.size() + unfinished.count <= most_leases) co_return nodes;
            toolbox(on).remove_orphans("leases " + directory, directory, is_permit);
            if (when_contended == if_contended::give_up) co_return std::nullopt;
            if (names.size() <= most_leases) {
                bodies = unfinished.fewer;
                co_return std::nullopt;
            }
            std::function<std::vector<std::string>()> others = [directory, own = paths_of(*nodes), names] {
                return without(own, directory, names);
            };
            const guards_in_the_way alarm(on, path, asked, std::move(others));
            bool in_turn = true;
            std::function<asio::awaitable<void>()> wait = [&]() -> asio::awaitable<void> {
                in_turn = co_await wait_in_turn(most, &seen->changes, turn);
            };
            if (unfinished.count == 0)
                co_await wait();
            else
                co_await unfinished.fewer.run_until(std::move(wait));
            if (!in_turn) co_return std::nullopt;
        }
    }
}

// @param on the session of an earlier attempt, if there was one; this attempt writes its own session there.
asio::awaitable<std::optional<permit_nodes>> acquire_permits(client zk, std::string path, permits max,
                                                             semaphore_options options, int n,
                                                             if_contended when_contended, acquire_options how,
                                                             std::optional<session>& on) {
    refuse_owner(how, path, "no lock_owner can hold permits: each request has some of its own");
    const int most = max.path().empty() ? std::min(max.number(), most_permits) : most_permits;
    if (n < 1 || n > most)
        throw error(errc::invalid_argument, "acquire", path,
                    "asked for " + std::to_string(n) + " permits" + (n < 1 ? "" : " of " + std::to_string(most)));
    if (how.data()) options.data(*how.data());
    const auto locks =
        std::make_shared<const lock_spec>(join_path(path, "locks"), lock_names(path), options.data(), options.acl());
    for (;;) {
        std::shared_ptr<lock_claim> inner;
        std::function<asio::awaitable<void>()> take_turn = [&]() -> asio::awaitable<void> {
            acquire_request what(locks, lock_kind::exclusive, when_contended);
            what.keeps_place = true;
            inner = co_await contend<std::shared_ptr<lock_claim>>(zk, std::move(what), how);
        };
        if (on && when_contended == if_contended::wait)
            co_await acquire_in_session(*on, path, take_turn);
        else
            co_await take_turn();
        if (!inner) co_return std::nullopt;
        on.emplace(inner->on());
        // `inner` is released when it goes out of scope. Its loss admits no request too many: only the number of leases
        // counts.
        std::optional<one_shot_event> bodies;
        auto nodes = co_await wait_for_permits(on->patient(), path, max, options, n, when_contended, *inner, bodies);
        if (!nodes && when_contended == if_contended::give_up) {
            // The leases' removals were sent before: a refused try keeps nobody out when it ends.
            inner->give_up();
            co_await inner->gone();
        }
        if (nodes || when_contended == if_contended::give_up) co_return nodes;
        inner.reset();
        if (bodies) co_await errors_as("acquire", path, bodies->wait());
    }
}

asio::awaitable<std::optional<lock_guard>> acquire_guard(client zk, std::string path, permits max,
                                                         semaphore_options options, int n, if_contended when_contended,
                                                         acquire_options how) {
    const boot_clock::time_point asked = boot_clock::now();
    std::optional<session> on;
    for (;;) {
        std::optional<permit_nodes> nodes =
            co_await acquire_permits(zk, path, max, options, n, when_contended, how, on);
        if (!nodes) co_return std::nullopt;
        std::vector<std::string> paths;
        std::int64_t token = 0;
        for (const owned_node& node : *nodes) {
            paths.push_back(node.path());
            token = std::max(token, node.czxid());
        }
        const std::shared_ptr<lock_claim> claim =
            std::make_shared<nodes_claim>(*on, std::move(paths), token, path, asked);
        for (owned_node& node : *nodes) node.keep();
        const bool kept = co_await wait_until_covered(claim);
        if (kept) co_return to_guard(claim, zk);
    }
}

asio::awaitable<std::vector<lock_guard>> acquire_guards(client zk, std::string path, permits max,
                                                        semaphore_options options, int n) {
    const acquire_options how;
    const boot_clock::time_point asked = boot_clock::now();
    std::optional<session> on;
    for (;;) {
        std::optional<permit_nodes> nodes;
        try {
            nodes = co_await acquire_permits(zk, path, max, options, n, if_contended::wait, how, on);
        } catch (...) {
            rethrow_without_trace("acquire", path);
        }
        std::vector<lock_guard> guards;
        for (owned_node& node : *nodes) {
            std::vector<std::string> paths(1, node.path());
            auto claim = std::make_shared<nodes_claim>(*on, std::move(paths), node.czxid(), path, asked);
            guards.emplace_back(std::move(claim), zk.keep_open());
            node.keep();
        }
        bool all = true;
        for (const lock_guard& guard : guards) {
            const bool kept = co_await wait_until_covered(guard.claim());
            all = all && kept;
        }
        if (all) co_return guards;
    }
}

}  // namespace

permit_request::permit_request(client zk, std::string path, permits max, semaphore_options options, int n)
    : lockable({}, std::move(zk), std::move(path)), max_(std::move(max)), options_(std::move(options)), n_(n) {
    if (!max_.path_.empty()) max_.path_ = toolbox(view()).whole_path(std::move(max_.path_));
}

lock_attempt permit_request::attempts(acquire_options how) const {
    return [zk = on(), path = directory(), max = max_, options = options_, n = n_, how = std::move(how)](
               if_contended when_contended) {
        return reported(errors_as_acquire(acquire_guard(zk, path, max, options, n, when_contended, how), path), zk,
                        path);
    };
}

asio::awaitable<std::vector<lock_guard>> permit_request::acquire_each() const {
    return in_view(view(), acquire_guards(on(), directory(), max_, options_, n_));
}

semaphore::semaphore(client zk, std::string path, permits max, semaphore_options options)
    : zk_(std::move(zk)), path_(std::move(path)), max_(std::move(max)), options_(std::move(options)) {
    check_directory("semaphore", zk_, path_);
    if (max_.path().empty() && max_.number() < 1)
        throw error(errc::invalid_argument, "semaphore", path_, "it takes at least one permit");
}

asio::awaitable<std::vector<lock_guard>> semaphore::acquire_each(int n) const {
    return request(n).acquire_each();
}

namespace {

// The order of the queue says who is first, and not who has permits.
asio::awaitable<std::vector<contender_info>> all_that(client zk, std::string directory, queue_names names, bool hold) {
    std::vector<contender_info> all = co_await contenders(zk, std::move(directory), std::move(names));
    for (contender_info& c : all) c.holds = hold;
    co_return all;
}

}  // namespace

asio::awaitable<std::vector<contender_info>> semaphore::holders() const {
    return errors_as("holders", path_, all_that(zk_, join_path(path_, "leases"), permit_names(path_), true));
}

asio::awaitable<std::vector<contender_info>> semaphore::waiting() const {
    return errors_as("waiting", path_, all_that(zk_, join_path(path_, "locks"), lock_names(path_), false));
}

}  // namespace zkasio
