#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/events.hpp>

#include <asio/awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::membership_detail {

/// A pending call of persistent_node::set_data().
struct data_request {
    explicit data_request(one_shot_event e) : answered(std::move(e)) {}

    const one_shot_event answered;
    std::uint64_t number = 0;  // the number of the call, from 1
    std::exception_ptr failed;  // written before `answered` is fired
};

/// Between the users of a persistent_node, on any threads, and its keeper: the keeper tells the node's state here, and
/// reads the users' wishes here.
class node_board {
public:
    /// @param events of the client whose close ends all waits. @param largest data that a request has room for.
    node_board(const operations& events, std::string path, std::string data, std::size_t largest);

    const std::string& path() const noexcept { return path_; }
    const operations& events() const noexcept { return events_; }

    // ------------------------------------------------------------------------------------------ for users
    persistent_node_state state() const noexcept { return state_.load(); }
    /// "" while the node does not stand.
    std::string known_path() const;
    std::string written_data() const;
    /// From now on leaving() is true.
    void ask_to_leave();
    static asio::awaitable<std::string> until_created(std::shared_ptr<node_board> self);
    static asio::awaitable<void> until_written(std::shared_ptr<node_board> self, std::string data);
    static asio::awaitable<persistent_node_state> until_other_state(std::shared_ptr<node_board> self,
                                                                    persistent_node_state known);
    static asio::awaitable<void> until_ended(std::shared_ptr<node_board> self,
                                             std::string_view operation = "ended");
    static asio::awaitable<void> until_left(std::shared_ptr<node_board> self);

    // ------------------------------------------------------------------------------------------ for the keeper
    bool leaving() const;
    /// The returned event is fired by the next wish after this call.
    one_shot_event next_wish();

    /// The data that the node is to have, and the number of the set_data() call that asks for them; 0: no call does.
    struct wished_data {
        std::string data;
        std::uint64_t number = 0;
    };
    wished_data data() const;
    bool has_new_data() const;
    /// The node has these data: answers their requests and older ones.
    void wrote(wished_data what);
    /// The servers refuse these data: their requests and older ones fail, and the data written last are kept.
    void refused(const wished_data& what, const std::exception_ptr& why);

    /// Calls of until_created() fail with `why` until the node stands; the keeper goes on.
    void cannot_create(std::exception_ptr why);
    /// An attempt has failed, and the keeper goes on: a cancellation or a limit of until_created() tells `why`.
    void attempt_failed(const std::exception_ptr& why);
    /// @param node_path of a node that stands.
    void tell(persistent_node_state state, std::string node_path = {});
    /// No other state follows. @param why null: the node has left.
    void end(const std::exception_ptr& why);

private:
    std::optional<std::string> standing_path() const;
    std::string why_not_standing() const;
    static asio::awaitable<std::string> why_not_created(std::shared_ptr<node_board> self);
    std::optional<persistent_node_state> state_unless(persistent_node_state known) const;
    std::shared_ptr<data_request> ask_for_data(std::string data);
    void forget_request(const std::shared_ptr<data_request>& request) noexcept;
    std::vector<std::shared_ptr<data_request>> take_requests(std::uint64_t up_to);
    void check_alive(std::string_view operation) const;

    const operations events_;
    const std::string path_;
    const std::size_t largest_;
    std::atomic<persistent_node_state> state_{persistent_node_state::creating};
    mutable std::mutex mutex_;
    // Guarded by mutex_:
    std::string node_path_, data_, last_failure_;
    std::optional<std::string> new_data_;  // of the newest set_data(), until they are written
    std::uint64_t last_number_ = 0;        // the number of the newest set_data()
    std::vector<std::shared_ptr<data_request>> requests_;
    std::exception_ptr failed_, cannot_create_;
    bool leaving_ = false, failed_to_leave_ = false;
    one_shot_event wish_;
    change_event change_;
};

}  // namespace zkasio::membership_detail
