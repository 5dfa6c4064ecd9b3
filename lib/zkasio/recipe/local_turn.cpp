#include <zkasio/recipe/local_turn.hpp>

#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session_local.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>

#include <list>
#include <system_error>
#include <utility>

namespace zkasio {

struct local_turn::state {
    state(const session& on, std::optional<std::chrono::milliseconds> m)
        : at_most(m), come(toolbox(on).make_one_shot_event()) {}

    const std::optional<std::chrono::milliseconds> at_most;
    const one_shot_event come;
    bool has_waited = false;          // written before `come` is fired
    std::shared_ptr<line> of;         // strand; null: not in a line
    std::list<state*>::iterator at;   // strand: in its line
};

// The writers of one node. On the strand.
class local_turn::line final : public session_local, public std::enable_shared_from_this<line> {
public:
    explicit line(const session& on) : on_(on) {}

    void enter(const std::shared_ptr<state>& s) {
        if (is_over_) return s->come.fire();
        s->of = shared_from_this();
        s->at = all_.insert(all_.end(), s.get());
        s->has_waited = all_.size() > 1;
        if (!s->has_waited) s->come.fire();
        limit_front();
    }
    void leave(state& s) {
        const std::shared_ptr<line> kept = std::exchange(s.of, nullptr);
        const bool had_turn = s.at == all_.begin();
        all_.erase(s.at);
        if (!had_turn) return;
        timer_.reset();
        if (all_.empty()) return;
        all_.front()->come.fire();
        limit_front();
    }
    bool has_turn(const state& s) const noexcept { return all_.front() == &s; }
    void let_all_go() noexcept {
        const std::shared_ptr<line> kept = weak_from_this().lock();
        timer_.reset();
        for (state* const s : std::exchange(all_, {})) {
            s->of.reset();
            s->come.fire();
        }
    }
    void session_over(std::error_code) noexcept override {
        is_over_ = true;
        let_all_go();
    }
    void loop_over() noexcept override { session_over({}); }

private:
    void limit_front() {
        if (timer_ || all_.size() < 2 || !all_.front()->at_most) return;
        timer_ = std::make_shared<asio::steady_timer>(on_.get_executor(), *all_.front()->at_most);
        // Destroying a timer that has just expired is too late to cancel its handler: hence the weak pointer.
        timer_->async_wait(
            [weak = weak_from_this(), timer = std::weak_ptr<asio::steady_timer>(timer_)](std::error_code cancelled) {
                const auto self = weak.lock();
                if (self && !cancelled && !timer.expired()) self->let_all_go();
            });
    }

    const session on_;
    std::list<state*> all_;  // the first has the turn
    std::shared_ptr<asio::steady_timer> timer_;
    bool is_over_ = false;
};

local_turn::local_turn(const session& on, const std::string& path, std::optional<std::chrono::milliseconds> at_most)
    : on_(on), state_(std::make_shared<state>(on, at_most)) {
    asio::dispatch(on_.get_executor(), [on, path, s = state_] {
        const auto make = [&] { return std::make_shared<line>(on); };
        const std::string key = "writers of " + toolbox(on).whole_path(path);
        std::static_pointer_cast<line>(toolbox(on.unrooted()).local(key, make))->enter(s);
    });
}

local_turn::~local_turn() {
    asio::dispatch(on_.get_executor(), [s = state_] {
        if (s->of) s->of->leave(*s);
    });
}

void local_turn::let_all_go() const noexcept {
    asio::dispatch(on_.get_executor(), [s = state_] {
        if (s->of && s->of->has_turn(*s)) s->of->let_all_go();
    });
}

asio::awaitable<bool> local_turn::until_come(std::shared_ptr<state> s, std::string operation, std::string path) {
    co_await errors_as(std::move(operation), std::move(path), s->come.wait());
    co_return s->has_waited;
}

asio::awaitable<bool> local_turn::come(std::string operation, std::string path) const {
    return until_come(state_, std::move(operation), std::move(path));
}

}  // namespace zkasio
