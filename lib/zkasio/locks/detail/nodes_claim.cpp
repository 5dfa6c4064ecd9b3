#include <zkasio/locks/detail/nodes_claim.hpp>

#include <zkasio/locks/detail/guards_in_the_way.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/detail/unfinished_permits.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <mutex>
#include <utility>

namespace zkasio::lock_detail {

struct nodes_claim::state {
    state(session s, std::vector<std::string> nodes, std::string lock, std::int64_t token, boot_clock::time_point asked)
        : on(std::move(s)), paths(std::move(nodes)), hold(on.hold(paths)), report(on, std::move(lock), token, asked) {}

    // From any thread; only the first call has an effect.
    void remove_nodes() noexcept {
        const std::lock_guard lock(mutex);
        if (std::exchange(removed, true)) return;
        report.end(hold.reason());
        for (const std::string& path : paths) removals.push_back(toolbox(on).ensure_removed(path));
    }

    session on;
    std::vector<std::string> paths;
    session_hold hold;
    reported_hold report;
    running_bodies bodies;
    bool given_up = false;                           // strand
    std::shared_ptr<unfinished_permits> unfinished;  // strand: counts the permits while `bodies` still run
    std::shared_ptr<own_guards> among;               // strand

    std::mutex mutex;
    bool removed = false;                   // guarded by the mutex
    std::vector<pending_removal> removals;  // guarded by the mutex

    // On the strand: the bodies no longer keep the permits counted.
    void finish() {
        if (const auto counted = std::exchange(unfinished, nullptr)) counted->subtract(paths.size());
    }
};

nodes_claim::nodes_claim(session on, std::vector<std::string> paths, std::int64_t token, std::string lock,
                         boot_clock::time_point asked)
    : state_(std::make_shared<state>(std::move(on), std::move(paths), lock, token, asked)), token_(token) {
    asio::dispatch(state_->on.get_executor(), [s = state_, lock] {
        s->among = own_guards::of(s->on, lock);
        s->among->add(s->paths, std::shared_ptr<running_bodies>(s, &s->bodies));
    });
    const std::shared_ptr<const session_hold> hold(state_, &state_->hold);
    when_lost(state_->on, hold, [weak = std::weak_ptr<state>(state_)](loss_reason) {
        const auto lost = weak.lock();
        if (!lost) return;
        if (!lost->given_up && lost->bodies.any()) {
            lost->unfinished = unfinished_permits::of(lost->on, std::string(parent_path(lost->paths.front())));
            lost->unfinished->add(lost->paths.size());
        }
        lost->remove_nodes();
    });
}

const session_hold& nodes_claim::hold() const noexcept { return state_->hold; }
const std::vector<std::string>& nodes_claim::paths() const noexcept { return state_->paths; }
const session& nodes_claim::on() const noexcept { return state_->on; }

std::optional<std::int32_t> nodes_claim::sequence() const noexcept {
    return sequence_of(node_name(paths().front()), permit_marker);
}

void nodes_claim::body_begins(asio::any_io_executor executor) {
    state_->bodies.announce();
    asio::dispatch(on().get_executor(), [s = state_, executor = std::move(executor)] { s->bodies.begin(executor); });
}

void nodes_claim::body_ends(asio::any_io_executor executor) noexcept {
    asio::dispatch(on().get_executor(), [s = state_, executor = std::move(executor)] {
        s->bodies.end(executor);
        if (!s->bodies.any()) s->finish();
    });
}

void nodes_claim::give_up() noexcept {
    state_->hold.end(true);
    state_->remove_nodes();
    asio::dispatch(on().get_executor(), [s = state_] {
        s->given_up = true;
        s->finish();
    });
}

asio::awaitable<void> nodes_claim::gone() {
    const auto keeps = state_;
    std::vector<pending_removal> removals;
    {
        const std::lock_guard lock(keeps->mutex);
        removals = keeps->removals;
    }
    for (const pending_removal& r : removals) co_await r.result();
}

}  // namespace zkasio::lock_detail
