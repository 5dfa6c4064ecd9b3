#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_local.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// A node that each transaction writes, see zkasio::receipts.
struct receipt {
    std::string path;
    std::int32_t version = -1;  // of the node; -1: the node is not known to exist

    std::string next_data() const { return std::to_string(version + 1); }
};

/// The receipts of a session in one directory with one ACL: at most `most`, each for one transaction at a time. Further
/// transactions wait in the order of their calls. Found on the strand; the other members on any threads.
class receipt_pool final : public session_local {
public:
    /// So many transactions are under way at a time. Few enough for the servers, which remove all ephemeral nodes of a
    /// session in one transaction.
    static constexpr std::size_t most = 64;

    /// @param kept whether the pool stays until the session ends, also without a user; of the pools without a user, a
    /// session keeps the `most` that were used last. Else the receipts are removed with the last user. On the strand.
    static std::shared_ptr<receipt_pool> of(const session& on, const std::string& directory, const acl& entries,
                                            bool kept);

    explicit receipt_pool(session on) : on_(std::move(on)) {}
    ~receipt_pool() override;
    void session_over(std::error_code) noexcept override { end(); }
    void loop_over() noexcept override { end(); }
    /// The process that resumes the session has receipts of its own.
    bool waits() noexcept override;

    /// The right of one transaction to use a receipt. Stays where it was made.
    class turn {
    public:
        explicit turn(std::shared_ptr<receipt_pool> from) : from_(std::move(from)) {}
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        /// Passes the right on to the transaction that has waited longest.
        ~turn();

        /// *Completes when* a receipt is free, or the session is over: requests with the receipt then fail.
        /// *Fails with* errc::client_closed. *Cancellation*: ends the wait.
        asio::awaitable<void> come(std::string operation, std::string directory);

        /// As come(), where there is no room for another receipt: for one that other transactions use. False: there is
        /// none.
        asio::awaitable<bool> come_again(std::string operation, std::string directory);

        /// A receipt whose node exists; nothing: this transaction may create another one.
        std::optional<receipt> take_found() noexcept { return std::exchange(found_, std::nullopt); }
        /// The next transaction may use this receipt.
        void leave(receipt r) noexcept { found_.emplace(std::move(r)); }

    private:
        friend class receipt_pool;
        enum class state {
            outside,
            waiting,
            has_come
        };
        const std::shared_ptr<receipt_pool> from_;
        // Under the pool's mutex while it waits:
        state now_ = state::outside;
        std::list<turn*>::iterator place_;
        std::uint64_t number_ = 0;  // in the order in which they have come
        std::optional<one_shot_event> come_;
        std::optional<receipt> found_;
    };

    void remove(const receipt& r) const noexcept;

private:
    std::optional<one_shot_event> enter(turn& t);
    enum class entered { no, has_come, waits };
    entered enter_again(turn& t);
    bool take_idle(turn& t);
    void wait(turn& t, std::list<turn*>::iterator in_front_of);
    void leave(turn& t) noexcept;
    void end() noexcept;

    const session on_;
    std::mutex mutex_;
    std::vector<receipt> idle_;
    std::size_t in_use_ = 0;
    std::list<turn*> waiting_;
    std::uint64_t last_number_ = 0;
    bool over_ = false;
};

}  // namespace zkasio::detail
