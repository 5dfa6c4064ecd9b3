#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/locks/detail/local_right.hpp>
#include <zkasio/recipe/change_event.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

namespace zkasio::lock_detail {

/// The numbers of one `slots` that contenders of one session hold, try to get, or have not given back yet. From any
/// thread.
class local_slots final : public session_local, public std::enable_shared_from_this<local_slots> {
public:
    explicit local_slots(const session& on) : random_(static_cast<std::uint64_t>(on.id())), change_(on, mutex_) {}

    static asio::awaitable<std::shared_ptr<local_slots>> of(session on, std::string path);

    /// The right to try, and to hold, this number. Null while another contender has it.
    std::shared_ptr<local_right> take(std::uint32_t number);
    /// What a record says of its number holds for all contenders of this session: it is read once.
    void set_rest(std::uint32_t number, boot_clock::time_point until);
    /// How long the number still rests, as far as known; nothing: not known, or over.
    std::optional<boot_clock::duration> rest_of(std::uint32_t number, boot_clock::time_point now);
    /// The next random number. The same ones for the same session: so that a simulation can be repeated.
    std::uint64_t random() noexcept;
    /// Fires when a number is released that take() has refused.
    one_shot_event next_release() { return change_.next(); }

    void session_over(std::error_code) noexcept override {}

private:
    class right;

    std::mutex mutex_;
    std::map<std::uint32_t, bool> taken_;  // guarded by the mutex; true: take() has refused the number
    std::map<std::uint32_t, boot_clock::time_point> rests_;  // guarded by the mutex
    std::uint64_t random_;                                   // guarded by the mutex
    change_event change_;
};

}  // namespace zkasio::lock_detail
