#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/membership/persistent_node_state.hpp>
#include <zkasio/one_shot_event.hpp>
#include <zkasio/operations.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::membership_detail {

/// One call of persistent_node::set_data().
struct data_request {
    data_request(std::string d, one_shot_event e) : data(std::move(d)), answered(std::move(e)) {}

    const std::string data;
    const one_shot_event answered;
    std::exception_ptr failed;  // written before `answered` is fired
};

/// Between those who use a persistent_node, on any threads, and its keeper, which tells them here how it stands, and
/// reads here what they wish.
class node_board {
public:
    /// @param events of the client whose close ends all waits.
    node_board(const operations& events, std::string path, std::string data);

    const std::string& path() const noexcept { return path_; }
    const operations& events() const noexcept { return events_; }

    // ------------------------------------------------------------------------------------------ for users
    persistent_node_state state() const noexcept { return state_.load(); }
    /// From now on leaving().
    void ask_to_leave();
    static asio::awaitable<std::string> until_created(std::shared_ptr<node_board> self);
    static asio::awaitable<void> until_written(std::shared_ptr<node_board> self, std::string data);
    static asio::awaitable<persistent_node_state> until_other_state(std::shared_ptr<node_board> self,
                                                                    persistent_node_state known);
    static asio::awaitable<void> until_ended(std::shared_ptr<node_board> self);
    static asio::awaitable<void> until_left(std::shared_ptr<node_board> self);

    // ------------------------------------------------------------------------------------------ for the keeper
    bool leaving() const;
    /// Fired by whatever is wished after this call.
    one_shot_event next_wish();

    /// The data that the node is to have, and how many requests ask for them.
    struct wished_data {
        std::string data;
        std::size_t requests = 0;
    };
    wished_data data() const;
    /// The node has these data: answers the requests.
    void wrote(wished_data what);
    /// The servers do not take these data: the requests fail, and what was written last counts.
    void refused(const wished_data& what, const std::exception_ptr& why);

    /// @param node_path of a node that stands.
    void tell(persistent_node_state state, std::string node_path = {});
    /// Nothing follows. @param why null: it has left.
    void end(const std::exception_ptr& why);

private:
    one_shot_event next_change();
    asio::awaitable<void> wait(one_shot_event change) const;
    std::optional<std::string> standing_path() const;
    void ask_for_data(const std::shared_ptr<data_request>& request);
    std::vector<std::shared_ptr<data_request>> take_requests(std::size_t how_many);
    void check_alive() const;

    const operations events_;
    const std::string path_;
    std::atomic<persistent_node_state> state_{persistent_node_state::creating};
    mutable std::mutex mutex_;
    // Guarded by it:
    std::string node_path_, data_;
    std::vector<std::shared_ptr<data_request>> requests_;
    std::exception_ptr failed_;
    bool leaving_ = false, failed_to_leave_ = false;
    one_shot_event wish_, change_;
};

}  // namespace zkasio::membership_detail
