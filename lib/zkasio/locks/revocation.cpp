#include <zkasio/locks/revocation.hpp>

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/revocation_watch.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <utility>

namespace zkasio {
namespace {

// Adds the contender's line to the note of the directory, and removes the lines of contenders that have gone. False:
// another client has written to the directory in between, or the session has ended.
asio::awaitable<bool> revoke_in_directory(session on, std::string directory, std::string name) {
    // A server that lags behind may not know the contender yet. Servers of one session do not go back behind a sync().
    co_await on.sync(directory);
    const node_data found = co_await on.get(directory);
    directory_note note = directory_note::parse_to_write(found.data, "revoke", directory);
    const node_children there = co_await on.children(directory);  // read after the note: not listed means gone
    const auto is_gone = [&](const std::string& contender) {
        return std::find(there.names.begin(), there.names.end(), contender) == there.names.end();
    };
    if (is_gone(name) || note.revokes(name)) co_return true;
    std::erase_if(note.revoked, is_gone);
    note.revoked.push_back(std::move(name));
    try {
        co_await on.set(directory, note.text(), found.stat.version);
    } catch (const error& e) {
        if (e.code() != zk_errc::bad_version) throw;
        co_return false;
    }
    co_return true;
}

// A server that lags behind may not know the contender yet: the write then tells.
asio::awaitable<void> revoke_in_node(client zk, std::string path) {
    const std::optional<node_stat> node = co_await zk.exists(path);
    if (node && !node->is_ephemeral())
        throw error(errc::invalid_argument, "revoke", path,
                    "no contender's node, which would end with a session: contenders() tells them");
    co_await zk.set(path, lock_detail::revoke_message);
}

}  // namespace

asio::awaitable<void> revoke(client zk, std::string path, holder_data data) {
    std::error_code gone;
    try {
        const bool is_noted = has_contender_id(path);
        if (!is_noted && data == holder_data::kept)
            throw error(errc::invalid_argument, "revoke", path, "the holders of this kind of lock look at their node");
        if (!is_noted || (data == holder_data::replaced && !is_latch_node(path))) {
            co_await revoke_in_node(zk, path);
            co_return;
        }
        const std::string directory(parent_path(path)), name(node_name(path));
        co_await zk.sync(directory);  // refused where there is no quorum, for which requests of a session would wait
        back_off pauses = toolbox(zk).make_back_off();
        for (bool written = false; !written;) {
            const session on = co_await toolbox(zk).current_session("revoke", path);
            try {
                written = co_await revoke_in_directory(on, directory, name);
            } catch (const error& e) {
                if (e.code() != errc::session_expired) throw;
            }
            if (!written) co_await pauses.pause("revoke", path);
        }
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node) rethrow_as("revoke", path);
        gone = e.code();
    }
}

}  // namespace zkasio
