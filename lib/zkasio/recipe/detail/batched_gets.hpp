#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/client/core.hpp>
#include <zkasio/session_local.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <system_error>

namespace zkasio::detail {

/// The reads of toolbox::start_gets() of one session, by all recipes, and what its servers have taught about them. A
/// ping waits for its answer behind the answers under way, and the C library counts no part of these as a sign of life:
/// so few are under way, and they are as large as the size of the nodes allows. Calls take turns: one for few nodes
/// does not wait for all of a large one. On the strand.
class batched_gets final : public session_local, public std::enable_shared_from_this<batched_gets> {
public:
    struct read {
        command get;
        kept_reply_ptr to;
    };
    using reads = std::deque<read>;

    /// Those of the current session.
    static std::shared_ptr<batched_gets> of(core& on);
    explicit batched_gets(core& on) : on_(on) {}

    /// @param call of one session, and alike in session::patient().
    void ask(reads call);

private:
    static constexpr std::size_t fewest = 3, most_at_first = 8, most = 32;  // nodes in a batch

    void session_over(std::error_code) noexcept override {}
    void loop_over() noexcept override { calls_.clear(); }

    void send();
    void send_later();
    void wait_for_connection();
    reads take();
    void ask_together(reads batch);
    void ask_alone(read one);
    void ask_again(reads all);
    void ask_again(read one, bool is_last);
    void answered_alone();
    bool are_single() const;
    bool is_paused() const { return boot_clock::now() < single_until_; }
    void learn(const reply& r, std::size_t n);
    void learn_loss(std::size_t n);
    void halve();
    void pause();

    core& on_;
    std::list<reads> calls_;  // what they have not sent yet; none of them empty
    std::size_t batches_ = 0, alone_ = 0;        // under way
    std::size_t most_in_batch_ = most_at_first;  // nodes
    std::size_t answered_ = 0;                   // the largest one
    int lost_ = 0;                 // connections with a batch, none of which was answered since
    std::uint64_t lost_with_ = 0;  // the connection
    boot_clock::time_point single_until_{}, larger_from_{};
};

}  // namespace zkasio::detail
