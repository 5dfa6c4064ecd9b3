#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace zkasio {

/// The turn of a writer of a node that has met a conflict, among those of its session: so that they do not go on being
/// in each other's way. Waits from its construction on; destroyed, it passes on to the writer that has waited longest.
/// A writer whose first attempt is under way has none. Sends no requests. On any thread. For writers of recipes.
class ZKASIO_EXPORT local_turn {
public:
    /// @param at_most the turn keeps others waiting for so long, for a writer that may itself wait for one of them:
    /// then all that wait go on at once, without turns.
    local_turn(const session& on, const std::string& path, std::optional<std::chrono::milliseconds> at_most);
    local_turn(const local_turn&) = delete;
    local_turn& operator=(const local_turn&) = delete;
    ~local_turn();

    /// *Completes when* the turn has come, or the session is over. True: it has waited for other writers.
    /// *Fails with* errc::client_closed. *Cancellation*: ends the wait.
    asio::awaitable<bool> come(std::string operation, std::string path) const;

    /// The writer fails: those that wait have waited long enough, perhaps as long as it has for a connection.
    void let_all_go() const noexcept;

private:
    struct state;
    class line;
    static asio::awaitable<bool> until_come(std::shared_ptr<state> s, std::string operation, std::string path);

    session on_;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio
