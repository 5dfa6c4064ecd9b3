#include <zkasio/cache/detail/stream_state.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <utility>

namespace zkasio::cache_detail {

namespace {

std::string checked_path(const std::string& name, std::string path) {
    require_path(name, path);
    return path;
}

const stream_ptr& require_valid(const stream_ptr& stream) {
    if (!stream) throw error(errc::invalid_argument, "watch", {}, "this stream was moved from");
    return stream;
}

}  // namespace

stream_state::stream_state(const client& zk, std::string n, std::string p, node_read what)
    : name(std::move(n)), path(checked_path(name, std::move(p))), follower(zk, path, what) {}

std::shared_ptr<const void> open_stream(const client& zk, const stream_ptr& stream) {
    auto stop = [open = zk.keep_open(), stream](const void*) { stream->follower.stop(); };
    return {stream.get(), std::move(stop)};
}

asio::awaitable<std::optional<node_answer>> next_state(stream_ptr stream) {
    const auto turn = require_valid(stream)->reading.begin(stream->name, stream->path, "next() of this stream");
    node_report report = co_await stream->follower.next(stream->told);
    if (report.ended) throw error(report.mark.code, stream->name, stream->path);
    stream->told = report.mark;
    if (report.mark.code == zk_errc::no_node) co_return std::nullopt;
    if (report.mark.code) throw error(report.mark.code, stream->name, stream->path);
    co_return std::move(report.answer);
}

asio::awaitable<void> stream_closed(stream_ptr stream) { co_await require_valid(stream)->follower.close(); }

}  // namespace zkasio::cache_detail
