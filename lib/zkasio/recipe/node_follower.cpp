#include <zkasio/recipe/node_follower.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/detail/follow_engine.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>

#include <asio/error.hpp>

#include <utility>

namespace zkasio {

using engine_of_follower = std::shared_ptr<detail::follow_engine>;

namespace {

const engine_of_follower& require_valid(const engine_of_follower& engine) {
    if (!engine) throw error(errc::invalid_argument, "follow", {}, "this node_follower was moved from");
    return engine;
}

// A pending tell_next(), which the destructor cancels.
class asking {
public:
    asking(const engine_of_follower& engine, std::optional<node_mark> known)
        : engine_(engine), awaited_(std::make_shared<detail::awaited_report>(engine->on())) {
        const auto tell = [to = awaited_](node_report report) { to->tell(std::move(report)); };
        engine_->tell_next(std::move(known), tell, awaited_);
    }
    asking(const asking&) = delete;
    asking& operator=(const asking&) = delete;
    ~asking() {
        if (awaited_) engine_->forget(std::move(awaited_));
    }

    const one_shot_event& is_told() const noexcept { return awaited_->is_told; }
    node_report take() { return std::move(std::exchange(awaited_, nullptr)->report); }

private:
    const engine_of_follower engine_;
    detail::awaited_report_ptr awaited_;
};

asio::awaitable<node_report> next_report(engine_of_follower engine, std::optional<node_mark> known) {
    asking asked(require_valid(engine), std::move(known));
    co_await errors_as("next", engine->path(), asked.is_told().wait());
    node_report report = asked.take();
    if (report.mark.code == asio::error::operation_aborted)
        throw error(report.mark.code, "next", engine->path(), "another one has asked meanwhile");
    co_return report;
}

asio::awaitable<void> follower_closed(engine_of_follower engine) {
    require_valid(engine)->stop();
    co_await errors_as("close", engine->path(), engine->stopped().wait());
}

}  // namespace

node_follower::node_follower(const client& zk, std::string path, node_read what) {
    require_path("follow", path);
    if (what == node_read::stat)
        throw error(errc::invalid_argument, "follow", path, "what can be followed are data and children");
    try {
        engine_ = std::make_shared<detail::follow_engine>(zk, path, what);
        engine_->begin(zk);
    } catch (const error&) {
        rethrow_as("follow", path);
    }
}

node_follower& node_follower::operator=(node_follower&& other) noexcept {
    const node_follower gone = std::move(*this);
    engine_ = std::move(other.engine_);
    return *this;
}

node_follower::~node_follower() {
    if (engine_) engine_->stop();
}

void node_follower::tell_next(std::optional<node_mark> known, listener tell) const {
    require_valid(engine_)->tell_next(std::move(known), std::move(tell));
}

void node_follower::stop() const noexcept {
    if (engine_) engine_->stop();
}

asio::awaitable<node_report> node_follower::next(std::optional<node_mark> known) const {
    return next_report(engine_, std::move(known));
}

asio::awaitable<void> node_follower::close() const { return follower_closed(engine_); }

}  // namespace zkasio
