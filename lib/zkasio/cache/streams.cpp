#include <zkasio/cache/streams.hpp>

#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zkasio::cache_detail {

/// The state of a value_stream or a children_stream.
struct stream_state {
    /// @param n the operation that errors name.
    stream_state(const client& zk, std::string n, std::string p, node_read what);

    const std::string name, path;
    const node_follower follower;
    one_at_a_time reading;
    std::optional<node_mark> told;  // the last result or error of next(); only used by the coroutine that runs next()
};
using stream_ptr = std::shared_ptr<stream_state>;

/// Keeps the client open, and stops the stream when destroyed.
std::shared_ptr<const void> open_stream(const client& zk, const stream_ptr& stream);

/// The next state; nothing: there is no node. @param stream null: the stream was moved from.
asio::awaitable<std::optional<node_answer>> next_state(stream_ptr stream);
/// As next_state(), when the state has not changed for `quiet`, or `at_most` after the first change.
asio::awaitable<std::optional<node_answer>> settled_state(stream_ptr stream, std::chrono::nanoseconds quiet,
                                                          std::chrono::nanoseconds at_most);
asio::awaitable<void> stream_closed(stream_ptr stream);

namespace {

std::string checked_path(const std::string& name, std::string path) {
    require_path(name, path);
    return path;
}

node_follower follower_of(const client& zk, const std::string& name, const std::string& path, node_read what) {
    try {
        return {zk, path, what};
    } catch (const error&) {
        rethrow_as(name, path);
    }
}

const stream_ptr& require_valid(const stream_ptr& stream) {
    if (!stream) throw error(errc::invalid_argument, "watch", {}, "this stream was moved from");
    return stream;
}

}  // namespace

stream_state::stream_state(const client& zk, std::string n, std::string p, node_read what)
    : name(std::move(n)),
      path(checked_path(name, std::move(p))),
      follower(follower_of(zk, name, path, what)) {}

std::shared_ptr<const void> open_stream(const client& zk, const stream_ptr& stream) {
    auto stop = [open = zk.keep_open(), stream](const void*) { stream->follower.stop(); };
    return {stream.get(), std::move(stop)};
}

namespace {

// The result of next() or settled(), which from now on counts as told.
std::optional<node_answer> take(stream_state& stream, node_report report) {
    if (report.ended) throw error(report.mark.code, stream.name, stream.path);
    stream.told = report.mark;
    if (report.mark.code == zk_errc::no_node) return std::nullopt;
    if (report.mark.code) throw error(report.mark.code, stream.name, stream.path);
    return std::move(report.answer);
}

}  // namespace

asio::awaitable<std::optional<node_answer>> next_state(stream_ptr stream) {
    const auto turn = require_valid(stream)->reading.begin(stream->name, stream->path, "next() of this stream");
    node_report report = co_await stream->follower.next(stream->told);
    co_return take(*stream, std::move(report));
}

asio::awaitable<std::optional<node_answer>> settled_state(stream_ptr stream, std::chrono::nanoseconds quiet,
                                                          std::chrono::nanoseconds at_most) {
    const auto turn = require_valid(stream)->reading.begin(stream->name, stream->path, "next() of this stream");
    if (quiet < std::chrono::nanoseconds::zero() || at_most < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, stream->name, stream->path, "a time to settle is not negative");
    node_report report = co_await stream->follower.next(stream->told);
    const boot_clock::time_point end = boot_clock::after(at_most);
    while (!report.ended) {
        const std::optional<node_mark> seen = report.mark;
        const auto next = [&] { return stream->follower.next(seen); };
        std::optional<node_report> later = co_await run_with_deadline(std::min(end, boot_clock::after(quiet)), next);
        if (!later) break;
        report = std::move(*later);
    }
    co_return take(*stream, std::move(report));
}

asio::awaitable<void> stream_closed(stream_ptr stream) { co_await require_valid(stream)->follower.close(); }

}  // namespace zkasio::cache_detail

namespace zkasio {

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_data>> as_value(asio::awaitable<std::optional<node_answer>> next) {
    std::optional<node_answer> found = co_await std::move(next);
    std::optional<node_data> value;
    if (found) value.emplace(node_data{std::move(found->data), found->stat});
    co_return value;
}

}  // namespace

value_stream::value_stream(const client& zk, std::string path)
    : state_(std::make_shared<stream_state>(zk, "watch_value", std::move(path), node_read::data)),
      open_(open_stream(zk, state_)) {}

asio::awaitable<std::optional<node_data>> value_stream::next() const { return as_value(next_state(state_)); }
asio::awaitable<std::optional<node_data>> value_stream::settled(any_duration quiet, any_duration at_most) const {
    return as_value(settled_state(state_, quiet, at_most));
}
asio::awaitable<void> value_stream::close() const { return stream_closed(state_); }

value_stream watch_value(const client& zk, std::string path) { return value_stream(zk, std::move(path)); }

using namespace cache_detail;

namespace {

asio::awaitable<std::optional<node_children>> sorted(asio::awaitable<std::optional<node_answer>> next) {
    std::optional<node_answer> found = co_await std::move(next);
    std::optional<node_children> children;
    if (found) {
        std::sort(found->children.begin(), found->children.end());
        children.emplace(node_children{std::move(found->children), found->stat});
    }
    co_return children;
}

}  // namespace

children_stream::children_stream(const client& zk, std::string path)
    : state_(std::make_shared<stream_state>(zk, "watch_children", std::move(path), node_read::children)),
      open_(open_stream(zk, state_)) {}

asio::awaitable<std::optional<node_children>> children_stream::next() const {
    return sorted(next_state(state_));
}
asio::awaitable<std::optional<node_children>> children_stream::settled(any_duration quiet, any_duration at_most) const {
    return sorted(settled_state(state_, quiet, at_most));
}
asio::awaitable<void> children_stream::close() const { return stream_closed(state_); }

children_stream watch_children(const client& zk, std::string path) { return children_stream(zk, std::move(path)); }

}  // namespace zkasio
