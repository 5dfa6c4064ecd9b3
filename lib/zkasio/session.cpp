#include <zkasio/session.hpp>

#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/detail/handles/results.hpp>
#include <zkasio/detail/requests/validate.hpp>

#include <algorithm>

namespace zkasio {
namespace {

using detail::hold_ptr;
using own_node = detail::hold::own_node;

// In a hold that is over: the node that is gone; if none is, the first node of the part that is over.
const own_node* lost_node_of(const detail::hold& h) {
    if (const own_node* node = h.lost_node) return node;
    for (const hold_ptr& part : h.parts)
        if (part->over() != loss_reason::none) return lost_node_of(*part);
    if (h.nodes.empty()) return h.parts.empty() ? nullptr : lost_node_of(*h.parts.front());
    return &h.nodes.front();
}

// Whether the node is at the `path` of a view below `root`; "": of the client itself.
bool is_at(const own_node& node, std::string_view root, std::string_view path) {
    if (!root.empty() && path == "/") return node.path == root;
    return !path.empty() && node.path.size() == root.size() + path.size() && node.path.starts_with(root) &&
           node.path.ends_with(path);
}

// The hold that relies on the node at `path`: `whole` or a part of it; `whole` if there is no such node.
std::pair<hold_ptr, const own_node*> relying_on(const hold_ptr& whole, std::string_view root, std::string_view path) {
    for (const own_node& node : whole->nodes)
        if (is_at(node, root, path)) return {whole, &node};
    for (const hold_ptr& part : whole->parts)
        if (auto found = relying_on(part, root, path); found.second) return found;
    return {whole, nullptr};
}

bool all_watched(const detail::hold& h) {
    const auto is_watched = [](const own_node& node) { return node.watch && node.watch->is_set; };
    return std::all_of(h.nodes.begin(), h.nodes.end(), is_watched) &&
           std::all_of(h.parts.begin(), h.parts.end(), [](const hold_ptr& part) { return all_watched(*part); });
}

loss_reason end_with_lease(const std::shared_ptr<detail::core>& core, const hold_ptr& hold) noexcept {
    auto untold = loss_reason::none;
    if (hold->told.compare_exchange_strong(untold, loss_reason::lease_ended))
        asio::post(core->strand(), [core, hold] { core->holds().end(hold, loss_reason::lease_ended); });
    return hold->over();
}

}  // namespace

session_hold& session_hold::operator=(session_hold&& other) noexcept {
    if (this != &other) {
        end();
        core_ = std::move(other.core_);
        hold_ = std::move(other.hold_);
        root_ = other.root_;
    }
    return *this;
}

bool session_hold::held() const noexcept {
    return boot_clock::now() < held_until();
}

boot_clock::time_point session_hold::held_until() const noexcept {
    return reason() == loss_reason::none ? hold_->session->leased_until() : boot_clock::time_point();
}

// The strand may not have ended the hold yet: it may be late, or have no thread. Who finds the lease ended ends the
// hold for all: an answer that is read later must not extend it.
loss_reason session_hold::reason() const noexcept {
    if (!hold_) return loss_reason::released;
    if (const loss_reason why = hold_->over(); why != loss_reason::none) return why;
    if (core_->forked()) return loss_reason::forked;
    const detail::session_record& s = *hold_->session;
    if (s.over) return s.over_why;
    const bool lease_ended = hold_->confirmed.load(std::memory_order_acquire) && boot_clock::now() >= s.leased_until();
    return lease_ended ? end_with_lease(core_, hold_) : loss_reason::none;
}

std::string session_hold::lost_path() const {
    const auto* node = hold_ && reason() != loss_reason::none ? lost_node_of(*hold_) : nullptr;
    return node ? detail::shown_path(root_, node->path) : std::string();
}

// The awaitables of the members may be awaited after the hold is destroyed: hence coroutines that own what they need.
namespace {

using detail::core_ptr;

// The node to name in messages: the node that is gone, or else the first one.
std::string named_node(const hold_ptr& hold, detail::view_root root) {
    const auto* node = lost_node_of(*hold);
    return node ? detail::shown_path(root, node->path) : std::string();
}

// `hold` is null in a session_hold that was moved from.
void there(const hold_ptr& hold, std::string_view operation) {
    if (!hold) throw error(errc::lock_released, operation, {}, "this hold was moved from");
}

asio::awaitable<void> until_confirmed(core_ptr core, hold_ptr hold, detail::view_root root) {
    there(hold, "hold");
    if (hold->told.load(std::memory_order_acquire) == loss_reason::released)
        throw error(errc::lock_released, "hold", named_node(hold, root));
    const detail::wait_end failed = co_await detail::wait_for(core, renewed_of(hold));
    if (!failed.code) co_return;
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    std::error_code code = failed.code;
    if (why == loss_reason::session_expired) code = errc::session_expired;
    if (why == loss_reason::closed) code = errc::client_closed;
    if (why == loss_reason::forked) code = errc::forked;
    throw error(code, "hold", named_node(hold, root), code == errc::lock_lost ? to_string(why) : "");
}

asio::awaitable<loss_reason> until_lost(core_ptr core, hold_ptr hold, detail::view_root root) {
    if (!hold) co_return loss_reason::released;
    const detail::wait_end ended = co_await detail::wait_for(core, lost_of(hold));
    if (ended.code == condition::cancelled) throw error(ended.code, "lost", named_node(hold, root));
    const loss_reason why = hold->reason.load(std::memory_order_acquire);
    if (why != loss_reason::none) co_return why;
    co_return ended.code == errc::forked ? loss_reason::forked : loss_reason::closed;
}

asio::awaitable<std::error_code> until_over(core_ptr core, detail::session_record_ptr record) {
    detail::there(core, "session");
    const detail::wait_end why = co_await detail::wait_for(core, record->ended);
    if (why.code == condition::cancelled) throw error(why.code, "session");
    co_return why.code;
}

asio::awaitable<boot_clock::time_point> until_extended(core_ptr core, detail::session_record_ptr record,
                                                       boot_clock::time_point beyond) {
    detail::there(core, "lease_extended");
    do {
        const detail::wait_end r = co_await detail::wait_extended(core, record, beyond);
        if (r.code) throw error(r.code, "lease_extended");
    } while (record->leased_until() <= beyond);
    co_return record->leased_until();
}

}  // namespace

asio::awaitable<void> session_hold::confirmed() const { return until_confirmed(core_, hold_, root_); }
asio::awaitable<loss_reason> session_hold::lost() const { return until_lost(core_, hold_, root_); }

asio::awaitable<void> session_hold::run_body(std::function<asio::awaitable<void>()> body, core_ptr core,
                                             hold_ptr hold, const std::string* root) {
    there(hold, "run");
    if (!body) throw error(errc::invalid_argument, "run", named_node(hold, root), "the body is empty");
    detail::arm_function arm = [core, hold](const std::shared_ptr<detail::body_run>& run) {
        return detail::stop_when(core, lost_of(hold), run,
                                 [](std::error_code code) { return code != errc::lock_released; });
    };
    co_await detail::run_cancellable(std::move(body), std::move(arm), detail::body_strand::own);
}

void session_hold::on_lost(std::function<void(loss_reason)> f) const {
    if (!hold_) return;
    const detail::core_ptr core = core_;  // `f` may destroy this
    core->waits().then(hold_->lost, [f = std::move(f), raw = hold_.get()] {
        const loss_reason why = raw->reason.load(std::memory_order_acquire);
        if (why != loss_reason::released) f(why);
    });
}

void session_hold::watch_nodes() const {
    if (hold_) core_->holds().watch(hold_);
}

boot_clock::time_point session_hold::node_checked() const noexcept {
    if (!hold_) return {};
    return boot_clock::time_point(boot_clock::duration(hold_->proven()));
}

void session_hold::check_node() const {
    if (hold_) core_->holds().check(hold_);
}

bool session_hold::nodes_watched() const noexcept { return hold_ && all_watched(*hold_); }

void session_hold::end(bool node_goes_away) const noexcept {
    auto untold = loss_reason::none;
    if (!hold_ || !hold_->told.compare_exchange_strong(untold, loss_reason::released)) return;
    detail::on_strand(core_, [core = core_, hold = hold_, node_goes_away] {
        using enum detail::hold_keeper::own_nodes;
        core->holds().end(hold, loss_reason::released, nullptr, node_goes_away ? are_removed : stay);
    });
}

void session_hold::lose(loss_reason why, std::string_view path) const noexcept {
    if (!hold_) return;
    const auto found = relying_on(hold_, root_ ? std::string_view(*root_) : std::string_view(), path);
    const hold_ptr& hold = found.first;
    if (hold->over() != loss_reason::none) return;  // the first report tells which node is gone
    if (found.second) hold->lost_node = found.second;
    auto untold = loss_reason::none;
    hold->told.compare_exchange_strong(untold, why);
    detail::on_strand(core_, [core = core_, hold, why, node = found.second] { core->holds().end(hold, why, node); });
}

std::int64_t session::id() const noexcept { return session_ ? session_->session_id.load() : 0; }
std::chrono::milliseconds session::timeout() const noexcept {
    return std::chrono::milliseconds(session_ ? session_->timeout_ms.load() : 0);
}
boot_clock::duration session::renewal_interval() const noexcept {
    if (!session_) return {};
    return boot_clock::duration(timeout()) / static_cast<int>(core_->options().lease_renewal());
}
bool session::over() const noexcept { return !session_ || session_->over || core_->forked(); }
boot_clock::time_point session::leased_until() const noexcept {
    return session_ ? session_->leased_until() : boot_clock::time_point();
}

asio::awaitable<std::error_code> session::ended() const { return until_over(core_, session_); }
asio::awaitable<boot_clock::time_point> session::lease_extended(boot_clock::time_point beyond) const {
    return until_extended(core_, session_, beyond);
}

session_hold session::hold(std::string path) const {
    return path.empty() ? hold_nodes({}) : hold_nodes({&path, 1});
}

session_hold session::hold(std::vector<std::string> paths) const { return hold_nodes(paths); }

session_hold session::hold_nodes(std::span<std::string> paths) const {
    detail::there(core_, "hold");
    auto h = std::make_shared<detail::hold>();
    h->session = session_;
    h->nodes.reserve(paths.size());
    for (std::string& path : paths) {
        const std::size_t above = core_->chroot_length() + detail::size_of_root(root_);
        detail::validate_path(path, above, "hold");  // heartbeats carry the path
        h->nodes.emplace_back().path = detail::whole_path(root_, std::move(path));
    }
    detail::on_strand(core_, [core = core_, h] { core->add_hold(h); });
    return detail::access::make<session_hold>(core_, h, root_);
}

session_hold session::hold_all(const std::vector<std::reference_wrapper<const session_hold>>& parts) const {
    detail::there(core_, "hold_all");
    auto h = std::make_shared<detail::hold>();
    h->session = session_;
    for (const session_hold& part : parts) {
        if (!part.hold_ || part.hold_->session != session_)
            throw error(errc::invalid_argument, "hold_all", {}, "a part was moved from, or is of another session");
        h->parts.push_back(part.hold_);
    }
    detail::on_strand(core_, [core = core_, h] { core->add_hold(h); });
    return detail::access::make<session_hold>(core_, h, root_);
}

asio::any_io_executor session::get_executor() const { return detail::there(core_, "get_executor")->strand(); }

session session::patient() const {
    session same = *this;
    same.patient_ = true;
    return same;
}

session session::in_view_of(const operations& on) const {
    session same = *this;
    same.root_ = detail::access::root_of(on);
    // `on` may be another client's, as that of a guard which an owner shares.
    if (const detail::core_ptr& other = detail::access::core_of(on); same.root_ && other != core_)
        same.root_ = core_ ? core_->keep_root(*same.root_) : nullptr;
    return same;
}

session session::unrooted() const {
    session same = *this;
    same.root_ = nullptr;
    return same;
}

}  // namespace zkasio
