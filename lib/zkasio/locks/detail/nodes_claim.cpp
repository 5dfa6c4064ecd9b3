#include <zkasio/locks/detail/nodes_claim.hpp>

#include <zkasio/locks/detail/queue_names.hpp>
#include <zkasio/path.hpp>

namespace zkasio::lock_detail {

nodes_claim::nodes_claim(session on, std::vector<std::string> paths, std::int64_t token, std::string lock,
                         boot_clock::time_point asked)
    : on_(std::move(on)),
      paths_(std::move(paths)),
      hold_(on_.hold(paths_)),
      token_(token),
      report_(on_, std::move(lock), token, asked) {}

std::optional<std::int32_t> nodes_claim::sequence() const noexcept {
    return sequence_of(node_name(paths_.front()), permit_marker);
}

void nodes_claim::give_up() noexcept {
    if (std::exchange(given_up_, true)) return;
    hold_.end(true);
    report_.end(hold_.reason());
    try {
        for (const std::string& path : paths_) removals_.push_back(on_.ensure_removed(path));
    } catch (...) {
        // Out of memory: the nodes go with the session.
    }
}

asio::awaitable<void> nodes_claim::gone() {
    const auto removals = removals_;
    for (const pending_removal& r : removals) co_await r.result();
}

}  // namespace zkasio::lock_detail
