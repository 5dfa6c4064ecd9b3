#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/detail/client/core.hpp>
#include <zkasio/session_local.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <system_error>
#include <vector>

namespace zkasio::detail {

/// The reads of toolbox::start_gets() of one session, by all recipes, and what its servers have taught about them. A
/// ping waits for its answer behind the answers under way, and the C library counts no part of these as a sign of life:
/// so few are under way, and they are as large as the size of the nodes allows. On the strand.
class batched_gets final : public session_local, public std::enable_shared_from_this<batched_gets> {
public:
    struct read {
        command get;
        kept_reply_ptr to;
    };
    using reads = std::vector<read>;

    /// All wait in one line: nobody stands in it for long, and a lost connection sends no flood of them.
    static constexpr std::size_t most_of_a_call = 256;

    /// Those of the current session.
    static std::shared_ptr<batched_gets> of(core& on);
    explicit batched_gets(core& on) : on_(on) {}

    void ask(reads call);

private:
    static constexpr std::size_t fewest = 3, most_at_first = 8, most = 32;
    static constexpr int most_under_way = 2;

    void session_over(std::error_code) noexcept override {}
    void loop_over() noexcept override { waiting_.clear(); }

    void send();
    void send_later();
    reads take();
    void ask_together(reads batch);
    void ask_again(reads all);
    void ask_again(read one, bool is_last);
    void distribute(reply& r, const reads& batch);
    bool is_bounded() const;
    bool are_single() const;
    bool is_paused() const { return boot_clock::now() < single_until_; }
    void learn(const reply& r, std::size_t n);
    void learn_loss(std::size_t n);
    void halve();
    void pause();

    core& on_;
    std::deque<read> waiting_;
    int under_way_ = 0;                          // batches
    std::size_t most_in_batch_ = most_at_first;  // nodes
    std::size_t answered_ = 0;                   // the largest one
    int lost_ = 0;                 // connections with a batch, none of which was answered since
    std::uint64_t lost_with_ = 0;  // the connection
    boot_clock::time_point single_until_{}, larger_from_{};
};

}  // namespace zkasio::detail
