#include <zkasio/election/leadership.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/rethrow_to_caller.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>

namespace zkasio {
namespace {

using claim_ptr = std::shared_ptr<lock_claim>;

// Nothing: the directory has gone or the session has ended. In both cases the leader's node has gone, too.
asio::awaitable<std::optional<node_data>> read_directory(session on, std::string directory) {
    try {
        co_return co_await on.get(directory);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != errc::session_expired) throw;
    }
    co_return std::nullopt;
}

// Writes `data` into the directory's note: what a former leader has proclaimed is replaced, the other entries stay.
transaction proclaimed_in(const std::string& directory, const node_data& now, std::string_view leader,
                          const std::string& data) {
    directory_note note = directory_note::parse_to_write(now.data, "proclaim", directory);
    note.leader = leader;
    note.proclaimed = data;
    transaction steps;
    steps.set(directory, note.text(), now.stat.version);
    return steps;
}

// False: another client has written to the directory since it was read.
asio::awaitable<bool> commit_version(claim_ptr claim, transaction steps, std::string directory) {
    try {
        co_await lock_detail::commit_under(claim, false, std::move(steps), "proclaim");
    } catch (const error& e) {
        if (e.code() != zk_errc::bad_version || e.path() != directory) throw;
        co_return false;
    }
    co_return true;
}

asio::awaitable<void> proclaimed(claim_ptr claim, bool resigned, std::string data) {
    const bool leads = !resigned && claim->hold().held();
    // commit_under() throws the reason, unless a heartbeat has just been answered.
    if (!leads) co_await lock_detail::commit_under(claim, resigned, transaction(), "proclaim");
    const std::string node = claim->paths().front(), directory(parent_path(node));
    back_off pauses = toolbox(claim->on()).make_back_off();
    for (bool written = false; !written;) {
        const std::optional<node_data> now = co_await read_directory(claim->on(), directory);
        transaction steps;
        if (now)
            steps = proclaimed_in(directory, *now, node_name(node), data);
        else
            steps.check(directory);
        written = co_await commit_version(claim, std::move(steps), directory);
        if (!written) co_await pauses.pause();
    }
}

}  // namespace

asio::awaitable<void> leadership::proclaim(bytes data) const {
    const bool resigned = guard_.reason() == loss_reason::released;
    return requests_as("proclaim", guard_.path(), proclaimed(guard_.claim(), resigned, std::move(data).take()));
}

}  // namespace zkasio
