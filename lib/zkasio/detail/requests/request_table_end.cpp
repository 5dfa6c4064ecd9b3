// The part of request_table in which many requests end at once: with their session, or with the client.

#include <zkasio/detail/requests/request_table.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace zkasio::detail {

std::vector<op_id> request_table::of_this_session(bool another_follows) const {
    std::vector<op_id> all;
    for (const auto& [id, e] : entries_)
        if (e.what || e.pinned || !another_follows) all.push_back(id);
    return all;
}

void request_table::end(const std::vector<op_id>& over, std::error_code code) {
    refused_removals_.clear();
    for (const op_id id : over) fail(id, code);
    queue_.drop_all_but_normal();
    queue_.sweep([&](op_id id) { return !entries_.contains(id); });
    begin_to_expire({});
}

void request_table::end_unsent(std::error_code code) {
    std::vector<op_id> unsent;
    for (auto& [id, e] : entries_)
        if (e.at != stage::under_way) unsent.push_back(id);
    std::sort(unsent.begin(), unsent.end());
    queue_.clear();
    refused_removals_.clear();
    for (const op_id id : unsent) fail(id, code);
}

void request_table::end_all(std::error_code code) {
    queue_.clear();
    refused_removals_.clear();
    for (const op_id id : of_this_session(false)) fail(id, code);
}

void request_table::clear() {
    queue_.clear();
    watches_.clear();
    feeds_.clear();
    ephemerals_.clear();
    refused_removals_.clear();
    // A function given to `answered` may keep alive the object that waits for it.
    for (auto& [id, e] : entries_)
        if (const auto* kept = std::get_if<kept_reply_ptr>(&e.to)) (*kept)->answered.forget_calls();
    const auto gone = std::exchange(entries_, {});
    issued_ = issued_bytes_ = 0;
    one_is_alone_ = false;
    expiring_.clear();
    check();
}

}  // namespace zkasio::detail
