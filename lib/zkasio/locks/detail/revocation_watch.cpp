#include <zkasio/locks/detail/revocation_watch.hpp>

#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <optional>

namespace zkasio::lock_detail {

// Lives on the strand.
struct revocation_watch::state : std::enable_shared_from_this<state> {
    explicit state(std::shared_ptr<lock_claim> c)
        : claim(std::move(c)), on(claim->on()), decided(toolbox(on).make_one_shot_event()) {}

    // A place where the contender `node` may be asked to give way.
    struct place {
        std::string path;
        std::string node;

        bool asks(std::string_view data) const {
            return path == node ? data == revoke_message : directory_note::parse(data).revokes(node_name(node));
        }
    };

    // Older versions, and Curator's Revoker, write into the nodes of elections, too. The directory of an unfair_mutex
    // belongs to its user.
    void read_all() {
        const bool queues = claim->paths().size() > 1 || claim->sequence();
        for (const std::string& node : claim->paths()) {
            places.push_back({node, node});
            if (queues && has_contender_id(node)) places.push_back({std::string(parent_path(node)), node});
        }
        requests.resize(places.size());
        watches.resize(places.size());
        while (pauses.size() < places.size()) pauses.push_back(toolbox(on).make_back_off());
        for (std::size_t i = 0; i < places.size(); ++i) read(i);
    }

    void read(std::size_t i) {
        if (over) return;
        // The revocation_watch, and coroutines in asked(), keep this state alive; the pending answers do not.
        requests[i] = std::make_shared<pending_watched_data>(toolbox(on).start_get_and_watch(places[i].path));
        requests[i]->then([weak = weak_from_this(), i] {
            if (const auto self = weak.lock()) self->answered(i);
        });
    }

    void answered(std::size_t i) {
        if (over) return;  // decided; or the revocation_watch is destroyed, and `requests` is empty
        const std::string& node = places[i].node;  // gone, too, if its directory is gone
        const auto request = std::exchange(requests[i], nullptr);
        if (!request) return;
        try {
            watched<node_data> seen = request->get();
            if (places[i].asks(seen.value.data)) {
                claim->asked_back();
                return decide(nullptr);
            }
            pauses.at(i).reset();
            watches[i].emplace(std::move(seen.changes));
            watches[i]->then([weak = weak_from_this(), i](std::error_code, node_change) {
                if (const auto self = weak.lock()) self->read(i);  // fails if the session is over
            });
        } catch (const error& e) {
            if (e.code() == zk_errc::no_node) {
                claim->hold().lose(loss_reason::node_deleted, node);
                decide(std::make_exception_ptr(error(errc::lock_lost, "revoke_requested", node, "the node is gone")));
            } else if (e.code() == condition::retryable)
                pauses.at(i).then(on.get_executor(), [weak = weak_from_this(), i] {
                    if (const auto self = weak.lock()) self->read(i);
                });
            else
                decide(std::current_exception());
        }
    }

    void decide(std::exception_ptr why) {
        if (std::exchange(over, true)) return;
        failed = std::move(why);
        decided.fire();
        if (timer) begin_grace();
    }

    void begin_grace() {
        if (failed) return;
        timer->expires_after(grace);
        timer->async_wait([self = shared_from_this()](std::error_code cancelled) {
            if (cancelled) return;
            self->stopped = true;
            self->stop->fire();
        });
    }

    std::shared_ptr<lock_claim> claim;
    session on;
    std::vector<place> places;  // each place has an element in:
    std::vector<std::shared_ptr<pending_watched_data>> requests;
    std::vector<std::optional<watch>> watches;
    std::vector<back_off> pauses;
    one_shot_event decided;
    bool over = false;
    std::exception_ptr failed;
    std::optional<one_shot_event> stop;
    std::optional<asio::steady_timer> timer;
    std::chrono::nanoseconds grace{};
    std::atomic<bool> stopped{false};
};

revocation_watch::revocation_watch(std::shared_ptr<lock_claim> claim)
    : state_(std::make_shared<state>(std::move(claim))) {
    asio::dispatch(state_->on.get_executor(), [s = state_] { s->read_all(); });
}

revocation_watch::~revocation_watch() {
    try {
        asio::dispatch(state_->on.get_executor(), [s = state_] {
            s->over = true;
            s->requests.clear();
            s->watches.clear();
            s->pauses.clear();
            s->timer.reset();
        });
    } catch (...) {
    }
}

asio::awaitable<void> revocation_watch::until_asked(std::shared_ptr<state> s) {
    co_await errors_as("revoke_requested", s->claim->paths().front(), s->decided.wait());
    if (s->failed) std::rethrow_exception(s->failed);
}

asio::awaitable<void> revocation_watch::asked() const { return until_asked(state_); }

bool revocation_watch::stopped() const noexcept { return state_->stopped; }

void revocation_watch::stop_after(std::chrono::nanoseconds grace, one_shot_event stop) const {
    asio::dispatch(state_->on.get_executor(), [s = state_, stop = std::move(stop), grace] {
        s->stop = stop;
        s->grace = grace;
        s->timer.emplace(s->on.get_executor());
        if (s->over) s->begin_grace();
    });
}

}  // namespace zkasio::lock_detail
