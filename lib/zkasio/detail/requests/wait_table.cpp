#include <zkasio/detail/requests/wait_table.hpp>

#include <asio/error.hpp>

#include <cassert>
#include <utility>
#include <vector>

namespace zkasio::detail {

void wait_table::wait(op_id id, const one_shot_ptr& event, receiver to) {
    if (event->done) return to.deliver({event->code});
    if (made_here_.forked()) return to.deliver({errc::forked});
    if (after_the_end_) return to.deliver({after_the_end_});
    event->add(id);
    [[maybe_unused]] const bool is_new = waits_.emplace(id, entry{std::move(to), event}).second;
    assert(is_new);
}

void wait_table::fire(const one_shot_ptr& it, std::error_code code) {
    if (it->done) return;
    it->code = code;
    it->done.store(true, std::memory_order_release);
    it->take_calls([this](const std::function<void()>& f) { log_.call(f); });
    it->wake_all([&](op_id id) { end(id, code); });
}

void wait_table::then(one_shot_state& it, std::function<void()> f) {
    if (it.done) return log_.call(f);
    it.call(std::move(f));
}

bool wait_table::cancel(op_id id) {
    const auto it = waits_.find(id);
    if (it == waits_.end()) return false;
    it->second.event->leave(id);
    end(id, asio::error::operation_aborted);
    return true;
}

void wait_table::end_all(std::error_code code, const one_shot_ptr& but) {
    std::vector<op_id> over;
    for (const auto& [id, w] : waits_)
        if (w.event != but) over.push_back(id);
    for (const op_id id : over) {
        if (const auto it = waits_.find(id); it != waits_.end()) it->second.event->leave(id);
        end(id, code);
    }
}

void wait_table::end(op_id id, std::error_code code) {
    auto node = waits_.extract(id);
    if (!node.empty()) node.mapped().to.deliver({code});
}

}  // namespace zkasio::detail
