#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace zkasio::lock_detail {

struct slot_search;

/// What the contenders of one session for the numbers at one path share: which numbers they hold, try to get, or have
/// not given back yet, and the lines of those that wait. From any thread.
class local_slots final : public session_local, public std::enable_shared_from_this<local_slots> {
public:
    explicit local_slots(const session& on)
        : on_(on), random_(static_cast<std::uint64_t>(on.id())), change_(on, mutex_) {}

    static asio::awaitable<std::shared_ptr<local_slots>> of(session on, std::string path);

    /// Those who look for the same numbers, with the same rest, stand in one line.
    using line_key = std::pair<std::uint32_t, std::chrono::milliseconds>;
    struct line {
        std::map<std::uint64_t, one_shot_event> waiting;  // for their turn
        std::optional<std::uint64_t> turn;                // whose it is
        std::shared_ptr<slot_search> left;                // for the one whose turn it is
    };
    /// A contender's place in a line. One contender at a time has the turn: it asks the servers which numbers are free,
    /// and waits for changes. So a change costs one listing and one try for each free number, however many contenders
    /// wait.
    class place {
    public:
        /// The last one.
        place(std::shared_ptr<local_slots> of, line_key in);
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        /// Leaves the line.
        ~place() { pass_turn(nullptr); }

        /// *Completes when* no contender has the turn that came earlier: with what is left of its search; null when
        /// there is nothing. Until pass_turn(), the turn is this contender's; asked again, it completes at once.
        /// *Fails with* errc::session_expired or errc::client_closed.
        asio::awaitable<std::shared_ptr<slot_search>> turn();
        /// Gives the turn, and what is left of the search, to the next contender. This one may ask for a turn again, at
        /// its old place.
        void pass_turn(std::shared_ptr<slot_search> left) noexcept;

    private:
        static asio::awaitable<std::shared_ptr<slot_search>> wait_for_turn(std::shared_ptr<local_slots> of, line& in,
                                                                           std::uint64_t number);

        const std::shared_ptr<local_slots> of_;
        line* in_;
        std::uint64_t number_;
    };

    /// The right to try, and to hold, one number. Released when destroyed.
    class right {
    public:
        right(std::shared_ptr<local_slots> of, std::uint32_t number) : of_(std::move(of)), number_(number) {}
        right(const right&) = delete;
        right& operator=(const right&) = delete;
        ~right() { release(); }

        /// Announces release(), see want_released().
        void about_to_release() noexcept;
        /// release() is not to be expected soon after all: those who wait for it because of the announcement go on.
        void not_about_to_release() noexcept;
        void release() noexcept;

    private:
        friend class local_slots;
        const std::shared_ptr<local_slots> of_;
        const std::uint32_t number_;
        // Guarded by its mutex.
        bool wanted_ = false, leaving_ = false, released_ = true;
    };

    /// Null while another contender has this number.
    std::shared_ptr<right> take(std::uint32_t number);
    /// What a record says of its number holds for all contenders of this session: it is read once.
    void set_rest(std::uint32_t number, boot_clock::time_point until);
    /// How long the number still rests, as far as known; nothing: not known, or over.
    std::optional<boot_clock::duration> rest_of(std::uint32_t number, boot_clock::time_point now);
    /// The next random number. The same ones for the same session: so that a simulation can be repeated.
    std::uint64_t random() noexcept;
    /// The release of a taken number fires next_release(), also if take() does not refuse it until then.
    void want(std::uint32_t number);
    /// want() for those of the first n numbers that are about to be released. False: there are none.
    bool want_released(std::uint32_t n);
    /// want() for the first n numbers if contenders of this session have them all. False: they have not.
    /// Throws errc::session_expired or errc::client_closed when the session has ended.
    bool want_all(std::uint32_t n);
    /// Whether contenders of this session have the first n numbers.
    bool has_all(std::uint32_t n);
    /// Fires when a number is released that take() has refused, or that is wanted.
    one_shot_event next_release() { return change_.next(); }
    /// Whether nobody has been warned of a persistent node yet: true the first time.
    bool warns_of_persistent_node() noexcept;

    void session_over(std::error_code why) noexcept override;

private:
    bool all_taken(std::uint32_t n) const;

    const session on_;
    std::mutex mutex_;
    std::map<std::uint32_t, right*> taken_;                  // guarded by the mutex
    std::map<std::uint32_t, boot_clock::time_point> rests_;  // guarded by the mutex
    std::uint64_t random_;                                   // guarded by the mutex
    change_event change_;

    // All guarded by the mutex.
    bool warned_ = false;
    std::uint64_t places_ = 0;  // that were ever taken
    std::map<line_key, line> lines_;
    std::error_code over_;
};

}  // namespace zkasio::lock_detail
