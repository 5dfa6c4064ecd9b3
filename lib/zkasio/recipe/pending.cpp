#include <zkasio/recipe/pending.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/results.hpp>

#include <type_traits>
#include <utility>

namespace zkasio {

using namespace detail;

pending::pending(core_ptr core, std::shared_ptr<detail::kept_reply> kept_reply, view_root root,
                 std::string_view operation, std::string path)
    : core_(std::move(core)),
      kept_(std::move(kept_reply)),
      root_(root),
      operation_(operation),
      path_(std::move(path)) {}

// The coroutine may be awaited when the object is gone: so it has a copy of the object.
asio::awaitable<void> pending::until_answered(pending self) {
    there(self.core_, self.operation_, self.path_);
    const wait_end failed = co_await wait_for(self.core_, answer_of(self.kept_));
    const bool writes = self.operation_ == "create" || self.operation_ == "remove";
    if (failed.code) throw error(failed.code, self.operation_, self.path_, {}, writes);
    if (self.kept_->reply.hung_up_times == 0) co_return;
    reply hung_up = self.kept_->reply;
    co_await pause_after_hang_up(hung_up);
    if (hung_up.code == condition::cancelled) throw error(hung_up.code, self.operation_, self.path_, {}, writes);
}

asio::awaitable<void> pending::answered() const { return until_answered(*this); }

void pending::then(std::function<void()> f) const {
    const core_ptr core = there(core_, "then");  // `f` may destroy this
    core->waits().then(kept_->answered, std::move(f));  // called at once if the request was refused at once
}

reply& pending::answer() const {
    there(core_, operation_, path_);
    if (!kept_->answered.done)
        throw error(errc::invalid_argument, operation_, path_, "the request is not answered yet");
    return kept_->reply;
}

// The answer of a request that has succeeded.
reply& pending::good() const {
    reply& r = answer();
    throw_if_failed(r, operation_, path_);
    return r;
}

bool pending::withdraw() const {
    const auto core = core_;  // withdraw() may destroy this
    const auto asked = kept_;
    return core && core->requests().withdraw(asked);
}

namespace {

template <class Result, class Pending>
asio::awaitable<Result> result_of(Pending self) {
    co_await self.answered();
    co_return self.get();
}

// Copies what it needs, unless it may move it.
template <class Result, class Reply>
Result taken_from(Reply&& r) {
    Result result;
    result.stat = r.stat;
    if constexpr (std::is_same_v<Result, created>)
        result.path = std::forward<Reply>(r).path;
    else if constexpr (std::is_same_v<Result, node_children>)
        result.names = std::forward<Reply>(r).children;
    else
        result.data = std::forward<Reply>(r).data;
    return result;
}

}  // namespace

template <class Result>
asio::awaitable<Result> pending_result<Result>::result() const {
    return result_of<Result>(*this);
}

template <class Result>
Result pending_result<Result>::get() const {
    Result result = taken_from<Result>(good());  // a copy: another handle may read the same answer
    if constexpr (std::is_same_v<Result, created>)
        if (root_) result.path = shown_path(root_, std::move(result.path));
    return result;
}

template <>
void pending_removal::get() const {
    const reply& r = answer();
    if (r.code) throw_if_failed(r, operation_, r.path.empty() ? path_ : shown_path(root_, r.path));
}

template <class Result>
bool pending_result<Result>::found() const
    requires std::is_void_v<Result>
{
    return answer().found;
}

// In a shared library they are as visible as their arguments: so these are ZKASIO_EXPORT.
template class pending_result<created>;
template class pending_result<node_children>;
template class pending_result<node_data>;
template class pending_result<void>;

template <class Result>
pending_watched<Result>::pending_watched(core_ptr core, std::shared_ptr<detail::kept_reply> kept_reply,
                                         const std::string* root, std::shared_ptr<watch_state> watch,
                                         std::string_view operation, std::string path)
    : pending(std::move(core), std::move(kept_reply), root, operation, std::move(path)), watch_(std::move(watch)) {}

template <class Result>
pending_watched<Result>::~pending_watched() {
    if (!watch_) return;
    on_strand(core_, [core = core_, kept_reply = kept_, watch = std::move(watch_)] {
        core->waits().then(kept_reply->answered, [core, watch] { core->requests().leave_watch(watch); });
    });
}

template <class Result>
watched<Result> pending_watched<Result>::get() {
    reply& answer = good();
    if (!watch_) throw error(errc::invalid_argument, operation_, path_, "its answer was taken already");
    watch changes = access::make<watch>(core_, std::exchange(watch_, nullptr), root_);
    return watched<Result>{taken_from<Result>(std::move(answer)), std::move(changes)};
}

template class pending_watched<node_data>;
template class pending_watched<node_children>;

}  // namespace zkasio
