#include <zkasio/locks/detail/guards_in_the_way.hpp>

#include <zkasio/locks/detail/lock_reports.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::lock_detail {

std::shared_ptr<own_guards> own_guards::of(const session& on, const std::string& lock) {
    const auto make = [] { return std::make_shared<own_guards>(); };
    return std::static_pointer_cast<own_guards>(toolbox(on).local("own guards " + lock, make));
}

void own_guards::add(const std::vector<std::string>& nodes, std::weak_ptr<running_bodies> bodies) {
    if (by_node_.size() >= worth_a_look_) {
        std::erase_if(by_node_, [](const auto& g) { return g.second.bodies.expired(); });
        worth_a_look_ = std::max<std::size_t>(64, 2 * by_node_.size());
    }
    const boot_clock::time_point now = boot_clock::now();
    for (const std::string& node : nodes) by_node_.insert_or_assign(node, guard{nodes.front(), now, bodies});
}

void own_guards::drop(const std::vector<std::string>& nodes, const running_bodies& bodies) {
    for (const std::string& node : nodes) {
        const auto at = by_node_.find(node);
        if (at != by_node_.end() && at->second.bodies.lock().get() == &bodies) by_node_.erase(at);
    }
}

asio::awaitable<bool> own_guards::all_run_on(session on, std::string lock, std::vector<std::string> nodes,
                                             asio::any_io_executor from) {
    return asked_on_strand(on, "acquire", lock, [on, lock, nodes, from] {
        const auto among = of(on, lock);
        return std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
            const auto at = among->by_node_.find(node);
            const auto bodies = at == among->by_node_.end() ? nullptr : at->second.bodies.lock();
            return bodies && bodies->on(from);
        });
    });
}

void own_guards::warn_if_all_of(const std::vector<std::string>& nodes, const session& on, const std::string& lock) {
    if (warned_ || nodes.empty()) return;
    const boot_clock::time_point now = boot_clock::now();
    const auto is_idle = [&](const std::string& node) {
        const auto at = by_node_.find(node);
        if (at == by_node_.end() || now - at->second.since < long_wait) return false;
        const auto bodies = at->second.bodies.lock();
        return bodies && !bodies->any();
    };
    warned_ = std::all_of(nodes.begin(), nodes.end(), is_idle);
    if (warned_) warn_of_guard(on, lock, by_node_.at(nodes.front()).first_node);
}

// On the strand.
struct guards_in_the_way::state : std::enable_shared_from_this<state> {
    state(session s, std::string l, std::function<std::vector<std::string>()> n)
        : on(std::move(s)), lock(std::move(l)), nodes(std::move(n)), timer(on.get_executor()) {}

    void wait(boot_clock::duration left) {
        if (over) return;
        timer.expires_after(left);
        timer.async_wait([weak = weak_from_this()](std::error_code cancelled) {
            const auto self = cancelled ? nullptr : weak.lock();
            if (!self || self->over || self->on.over()) return;
            own_guards::of(self->on, self->lock)->warn_if_all_of(self->nodes(), self->on, self->lock);
            self->wait(long_wait);
        });
    }

    const session on;
    const std::string lock;
    const std::function<std::vector<std::string>()> nodes;
    asio::steady_timer timer;
    bool over = false;
};

guards_in_the_way::guards_in_the_way(session on, std::string lock, boot_clock::time_point asked,
                                     std::function<std::vector<std::string>()> nodes)
    : state_(std::make_shared<state>(std::move(on), std::move(lock), std::move(nodes))) {
    const boot_clock::duration left = asked + long_wait - boot_clock::now();
    asio::dispatch(state_->on.get_executor(), [s = state_, left = std::max<boot_clock::duration>(left, left.zero())] {
        s->wait(left);
    });
}

guards_in_the_way::~guards_in_the_way() {
    asio::dispatch(state_->on.get_executor(), [s = state_] {
        s->over = true;
        s->timer.cancel();
    });
}

}  // namespace zkasio::lock_detail
