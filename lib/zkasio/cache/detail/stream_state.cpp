#include <zkasio/cache/detail/stream_state.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <utility>

namespace zkasio::cache_detail {

namespace {

std::string checked_path(const std::string& name, std::string path) {
    require_path(name, path);
    return path;
}

node_follower follower_of(const client& zk, const std::string& name, const std::string& path, node_read what) {
    try {
        return {zk, path, what};
    } catch (const error&) {
        rethrow_step_as(name, path);
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
