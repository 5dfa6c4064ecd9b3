#include <zkasio/testing/waits.hpp>

#include <zkasio/clock.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/error.hpp>
#include <zkasio/printable.hpp>
#include <zkasio/recipe/certain.hpp>

#include <asio/this_coro.hpp>

#include <algorithm>
#include <optional>
#include <sstream>

namespace zkasio::testing {
namespace {

/// The last observation of the node, for the message of errc::timed_out.
struct node_seen {
    bool exists = false;
    std::vector<std::string> children;
    std::string trouble = "nothing was read";
};

using condition_on_node = std::function<bool(const node_seen&)>;

// Reads the node once. True: the condition holds. If not, waits for a change of the node and returns false.
asio::awaitable<bool> look(const client* zk, const std::string* path, const condition_on_node* holds, node_seen* seen) {
    auto node = co_await zk->exists_and_watch(*path);
    watch changes = std::move(node.changes);
    seen->exists = node.value.has_value();
    seen->children.clear();
    seen->trouble.clear();
    std::optional<watch> more;
    if (seen->exists) {
        std::optional<watched<node_children>> listed = co_await if_exists(zk->children_and_watch(*path));
        if (!listed) co_return false;  // removed since exists_and_watch()
        seen->children = std::move(listed->value.names);
        std::sort(seen->children.begin(), seen->children.end());
        more.emplace(std::move(listed->changes));
    }
    if ((*holds)(*seen)) co_return true;
    if (more)
        co_await more->changed();  // a removal makes it fire as well
    else
        co_await changes.changed();
    co_return false;
}

// Whether waiting for a connection, or for the next session, helps.
bool passes(const error& e) { return e.code() == condition::retryable || e.code() == errc::session_expired; }

asio::awaitable<void> follow(const client* zk, const std::string* path, const condition_on_node* holds,
                             node_seen* seen) {
    for (;;) {
        try {
            const bool held = co_await look(zk, path, holds, seen);
            if (held) co_return;
            continue;
        } catch (const error& e) {
            if (!passes(e)) throw;
            seen->trouble = e.what();
        }
        try {
            co_await zk->connected();
        } catch (const error& e) {
            if (!passes(e)) throw;
            seen->trouble = e.what();
        }
    }
}

std::string in_words(const node_seen& seen, std::chrono::nanoseconds within) {
    std::ostringstream text;
    text << "after " << std::chrono::duration<double>(within).count() << " s; ";
    if (!seen.trouble.empty()) {
        text << seen.trouble;
    } else if (!seen.exists) {
        text << "it does not exist";
    } else {
        const std::size_t n = seen.children.size(), most = 20;
        text << "it has " << (n == 0 ? "no" : std::to_string(n)) << (n == 1 ? " child" : " children");
        for (std::size_t i = 0; i < std::min(n, most); ++i) text << (i ? ", " : ": ") << printable(seen.children[i]);
        if (n > most) text << ", ...";
    }
    return text.str();
}

asio::awaitable<void> until(std::string operation, client zk, std::string path, condition_on_node holds,
                            std::chrono::nanoseconds within) {
    node_seen seen;
    auto body = [&]() -> asio::awaitable<void> { return follow(&zk, &path, &holds, &seen); };
    const bool ended = co_await run_with_deadline(boot_clock::after(std::max(within, within.zero())), body);
    if (!ended) throw error(errc::timed_out, operation, path, in_words(seen, within));
}

asio::awaitable<void> take_over_and_close(const client* victim, std::string* trouble) {
    const session_credentials stolen = co_await victim->credentials();
    const auto executor = co_await asio::this_coro::executor;
    // The thief has the victim's options, but not its log and observer.
    client_options options = victim->options();
    options.log(nullptr).observer(nullptr);
    // The victim reconnects at once, which ends the thief's connection: repeat until the thief was quicker.
    for (;;) {
        client_options resuming = options;
        const client thief(executor, resuming.resume(stolen));
        *trouble = "no server has let another client in";
        bool connected = false;
        try {
            co_await thief.connected();
            connected = true;
        } catch (const error& e) {
            *trouble = e.what();
        }
        const close_result closed = co_await thief.close();
        if (connected && closed == close_result::confirmed) co_return;
    }
}

}  // namespace

asio::awaitable<void> until_exists(client zk, std::string path, any_duration within) {
    return until("until_exists", std::move(zk), std::move(path), [](const node_seen& n) { return n.exists; }, within);
}

asio::awaitable<void> until_gone(client zk, std::string path, any_duration within) {
    return until("until_gone", std::move(zk), std::move(path), [](const node_seen& n) { return !n.exists; }, within);
}

asio::awaitable<void> until_empty(client zk, std::string path, any_duration within) {
    return until("until_empty", std::move(zk), std::move(path), [](const node_seen& n) { return n.children.empty(); },
                 within);
}

asio::awaitable<void> expire_session(client victim, any_duration given) {
    const std::chrono::nanoseconds within = given;
    std::string trouble = "it has no session";
    auto body = [&]() -> asio::awaitable<void> { return take_over_and_close(&victim, &trouble); };
    const bool ended = co_await run_with_deadline(boot_clock::after(std::max(within, within.zero())), body);
    if (!ended) throw error(errc::timed_out, "expire_session", {}, trouble);
}

}  // namespace zkasio::testing

namespace zkasio::testing_detail {

asio::awaitable<void> until_children_hold(client zk, std::string path, children_condition holds,
                                          any_duration within) {
    testing::condition_on_node on_node = [holds = std::move(holds)](const testing::node_seen& n) {
        return holds(n.children);
    };
    return testing::until("until_children", std::move(zk), std::move(path), std::move(on_node), within);
}

}  // namespace zkasio::testing_detail
