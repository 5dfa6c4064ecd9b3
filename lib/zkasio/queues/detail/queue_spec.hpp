#pragma once

#include <zkasio/create_options.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/detail/item_layout.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/session.hpp>
#include <zkasio/types.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace zkasio::queue_detail {

/// Whether servers refuse a request for a reason that lasts until an operator changes a node, this client, or the
/// servers.
inline bool is_lasting_refusal(const error& e) noexcept {
    return e.code() == zk_errc::no_auth || e.code() == zk_errc::quota_exceeded || e.code() == zk_errc::invalid_acl ||
           e.code() == zk_errc::no_children_for_ephemerals || e.hung_up();
}

/// What a work_queue was made with, and the paths of its nodes. The directories are persistent: sequence numbers of a
/// re-created directory begin again, so that two items could have the same name.
struct queue_spec {
    /// Throws errc::invalid_path and errc::invalid_argument for a path, and a lock path, in which nodes of this library
    /// would be among the items of the layout.
    queue_spec(std::string p, work_queue_options o);

    /// Names the queue, among all of a session.
    std::string key() const { return claims + ' ' + std::to_string(static_cast<int>(options.layout().kind())) + path; }
    std::string item(const std::string& name) const { return join_path(items, name); }
    std::string claim(const std::string& name) const { return join_path(claims, name); }

    create_options of_mode(create_mode mode) const { return create_options().mode(mode).acl(options.acl()); }
    create_options of_directory() const {
        return of_mode(create_mode::persistent).parents(missing_parents::create_persistent);
    }

    /// The bytes of a request that creates an item, without the item's data; at most.
    std::size_t bytes_around_item() const noexcept {
        std::size_t n = path.size() + 128;
        for (const acl_entry& e : options.acl()) n += e.who().scheme().size() + e.who().id().size() + 16;
        return n;
    }
    /// The largest value of an item that is put: the transactions that claim and move the item have more steps.
    std::size_t largest_item() const noexcept {
        const std::size_t around = 8 * bytes_around_item() + 8192;
        return max_request_bytes - (around < max_request_bytes ? around : max_request_bytes);
    }
    /// Whether the transactions that claim and move an item have room for its data. Another client may have created an
    /// item for which they have not.
    bool can_write_again(const std::string& data) const noexcept {
        return data.size() <= largest_item() + item_payload::frame_bytes;
    }

    const std::string path;
    const work_queue_options options;
    const item_names names;
    const item_payload payload;
    const std::string items, claims, later, dead, receipts;
};
using spec_ptr = std::shared_ptr<const queue_spec>;

/// Creates the directories of a queue unless they exist. @param on patient.
asio::awaitable<void> create_directories(session on, spec_ptr what);

}  // namespace zkasio::queue_detail
