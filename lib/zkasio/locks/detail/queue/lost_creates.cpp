#include <zkasio/locks/detail/queue/lost_creates.hpp>

#include <zkasio/locks/detail/queue/lock_queue.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

namespace zkasio::lock_detail {

std::string lost_creates::prefix_of(const lost& l) const { return queue_.names().prefix(l.id, l.who->asked.kind); }

void lost_creates::add(const contender_ptr& c, std::string id, std::exception_ptr hung_up) {
    if (!has_given_up(c->now())) queue_.go_to(c, stage::creation_lost);
    lost l{c, std::move(id), std::move(hung_up)};
    queue_.expect_node(prefix_of(l));  // G17: no contender follows the node that is searched for
    waiting_.push_back(std::move(l));
    if (!std::exchange(searching_, true)) queue_.tools().run_in_background(search(queue_.shared_from_this()));
}

asio::awaitable<void> lost_creates::search(std::shared_ptr<lock_queue> keeps_this_alive) {
    back_off pauses = keeps_this_alive->tools().make_back_off();
    while (!waiting_.empty()) {
        // Creates that are lost in one turn of the strand share one search.
        co_await asio::post(keeps_this_alive->on().get_executor(), asio::use_awaitable);
        const bool complete = co_await search_once();
        if (complete)
            pauses.reset();
        else
            co_await pauses.pause();
    }
    searching_ = false;
}

// False: some creates have to be searched for again.
asio::awaitable<bool> lost_creates::search_once() {
    const std::vector<lost> round = std::exchange(waiting_, {});
    std::vector<std::string> ids;
    for (const lost& l : round) ids.push_back(l.id);
    std::multimap<std::string, std::string> names;
    std::exception_ptr failed;
    try {
        names = co_await queue_.tools().find_all_protected(queue_.directory(), std::move(ids));
    } catch (...) {
        failed = std::current_exception();
    }
    const std::vector<look> looks = look_at_found(round, names, failed);
    bool complete = true;
    for (const auto& [l, reading] : looks) {
        std::exception_ptr unreadable;
        created node;
        node.path = l.who->path;
        bool deleted = false, again = false;
        try {
            const node_data seen = co_await reading.result();
            node.stat = seen.stat;
        } catch (const error& e) {
            deleted = e.code() == zk_errc::no_node;
            again = e.code() == condition::retryable;
            if (!deleted && !again) unreadable = std::current_exception();
        } catch (...) {
            unreadable = std::current_exception();
        }
        complete = complete && !again;
        if (again)
            waiting_.push_back(l);
        else if (deleted || unreadable)
            not_found(l, unreadable);
        else
            found(l, node);
    }
    co_return complete;
}

// No other create uses the id, so a node with this id is ours. Only reading the node tells the token; a contender that
// has given up needs no token.
std::vector<lost_creates::look> lost_creates::look_at_found(const std::vector<lost>& round,
                                                            const std::multimap<std::string, std::string>& names,
                                                            const std::exception_ptr& failed) {
    std::vector<look> looks;
    for (const lost& l : round) {
        const auto it = names.find(l.id);
        if (failed || it == names.end()) {
            not_found(l, failed);
            continue;
        }
        created node;
        node.path = l.who->path = join_path(queue_.directory(), it->second);
        if (has_given_up(l.who->now())) {
            found(l, node);
            continue;
        }
        if (l.who->now() != stage::creation_found) queue_.go_to(l.who, stage::creation_found);
        looks.emplace_back(l, queue_.tools().start_exists(node.path));
    }
    return looks;
}

void lost_creates::found(const lost& l, const created& node) {
    if (queue_.over()) return not_found(l, nullptr);
    queue_.stop_expecting_node(prefix_of(l));
    l.who->asked_at = queue_.order().hear_of_create();
    queue_.node_created(l.who, node);
}

// There is no node; or, with `failed`, the existence of the node could not be determined.
void lost_creates::not_found(const lost& l, const std::exception_ptr& failed) {
    const contender_ptr& c = l.who;
    queue_.stop_expecting_node(prefix_of(l));
    if (failed && !queue_.over() && !c->path.empty()) queue_.tools().ensure_removed(c->path);  // G37: of a found node
    const bool was_made = !c->path.empty();  // and is gone
    c->path.clear();
    if (queue_.over())
        queue_.creation().after_detour(c, queue_.ended("acquire", queue_.directory()));
    else if (failed || was_made)
        queue_.creation().after_detour(c, fresh_copy_of(failed));
    else
        queue_.creation().after_loss(c, l.hung_up);
    queue_.reconsider();  // G17: a contender that has seen the node in a listing, and not followed it, looks again
}

std::vector<contender_ptr> lost_creates::take_waiting() {
    std::vector<contender_ptr> all;
    for (lost& l : std::exchange(waiting_, {})) all.push_back(std::move(l.who));
    return all;
}

}  // namespace zkasio::lock_detail
