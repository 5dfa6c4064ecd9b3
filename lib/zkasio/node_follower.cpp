#include <zkasio/node_follower.hpp>

#include <zkasio/detail/follow_engine.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <utility>

namespace zkasio {

using engine_of_follower = std::shared_ptr<detail::follow_engine>;

namespace {

const engine_of_follower& present(const engine_of_follower& engine) {
    if (!engine) throw error(errc::invalid_argument, "follow", {}, "this node_follower was moved from");
    return engine;
}

asio::awaitable<node_report> next_report(engine_of_follower engine, std::optional<node_mark> known) {
    const auto told = std::make_shared<node_report>();
    const one_shot_event is_told = present(engine)->on().make_one_shot_event();
    engine->tell_next(std::move(known), [told, is_told](node_report report) {
        *told = std::move(report);
        is_told.fire();
    });
    co_await is_told.wait();
    co_return std::move(*told);
}

asio::awaitable<void> follower_closed(engine_of_follower engine) {
    present(engine)->stop();
    const one_shot_event stopped = engine->stopped();
    co_await stopped.wait();
}

}  // namespace

node_follower::node_follower(const client& zk, std::string path, node_read what) {
    if (const std::string problem = path_problem(path); !problem.empty())
        throw error(errc::invalid_path, "follow", path, problem);
    if (what == node_read::stat)
        throw error(errc::invalid_argument, "follow", path, "what can be followed are data and children");
    engine_ = std::make_shared<detail::follow_engine>(zk, std::move(path), what);
    engine_->begin(zk);
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
    present(engine_)->tell_next(std::move(known), std::move(tell));
}

void node_follower::stop() const noexcept {
    if (engine_) engine_->stop();
}

asio::awaitable<node_report> node_follower::next(std::optional<node_mark> known) const {
    return next_report(engine_, std::move(known));
}

asio::awaitable<void> node_follower::close() const { return follower_closed(engine_); }

}  // namespace zkasio
