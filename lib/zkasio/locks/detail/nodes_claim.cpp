#include <zkasio/locks/detail/nodes_claim.hpp>

#include <zkasio/locks/detail/guards_in_the_way.hpp>
#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>
#include <zkasio/locks/detail/running_bodies.hpp>
#include <zkasio/locks/detail/when_lost.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <cassert>
#include <mutex>
#include <optional>
#include <utility>

namespace zkasio::lock_detail {
namespace {

// Removes the node of an owned_node that was destroyed while its create was under way.
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
        const std::optional<created> left = co_await toolbox(on).find_protected(directory, id);
        if (!left) co_return;
        node = *left;
    }
    const pending_removal removal = toolbox(on).ensure_removed(node.path);
    co_await removal.answered();  // until then there is work in the background, see client::idle()
}

}  // namespace

owned_node::owned_node(session on, std::string directory, const std::string& name, std::string data, acl entries)
    : on_(std::move(on)), directory_(std::move(directory)), id_(new_protection_id()) {
    create_options options;
    options.mode(create_mode::ephemeral_sequential).acl(std::move(entries));
    creating_.emplace(toolbox(on_).start_create(join_path(directory_, protection_prefix(id_) + name),
                                                bytes(std::move(data)), options));
}

owned_node::owned_node(owned_node&& other) noexcept
    : on_(other.on_),
      directory_(std::move(other.directory_)),
      id_(std::move(other.id_)),
      creating_(std::exchange(other.creating_, std::nullopt)),
      node_(std::exchange(other.node_, {})) {}

owned_node::~owned_node() {
    if (!node_.path.empty())
        toolbox(on_).ensure_removed(node_.path);
    else if (creating_)
        toolbox(on_).run_in_background(withdraw(on_, std::move(*creating_), directory_, id_));
}

asio::awaitable<bool> owned_node::created() {
    bool lost = false;
    std::optional<error> hung_up;
    try {
        node_ = co_await creating_->result();
    } catch (const error& e) {
        lost = e.outcome_unknown() && e.code() == condition::retryable;
        if (!lost) {
            if (e.code() != condition::cancelled) creating_.reset();
            throw;
        }
        if (e.hung_up()) hung_up.emplace(e);
    }
    if (lost) {
        const std::optional<zkasio::created> found = co_await toolbox(on_).find_protected(directory_, id_);
        if (found) node_ = *found;
    }
    creating_.reset();
    if (hung_up && node_.path.empty())
        throw hung_up->renamed("create a node below", directory_).not_applied();
    co_return !node_.path.empty();
}

std::shared_ptr<unfinished_permits> unfinished_permits::of(const session& on, const std::string& directory) {
    const auto make = [&] { return std::make_shared<unfinished_permits>(on); };
    return std::static_pointer_cast<unfinished_permits>(toolbox(on).local("unfinished permits " + directory, make));
}

void unfinished_permits::subtract(std::size_t n) {
    assert(n <= count_);
    count_ -= n;
    std::exchange(fewer_, toolbox(on_).make_one_shot_event()).fire();
}

asio::awaitable<unfinished_permits::reading> unfinished_permits::now(session on, std::string directory) {
    return asked_on_strand(on, "acquire", directory, [on, directory] {
        const auto all = of(on, directory);
        return reading(all->count_, all->fewer_);
    });
}

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
