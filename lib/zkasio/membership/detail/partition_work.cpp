#include <zkasio/membership/detail/partition_work.hpp>

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/log_warning.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace zkasio::membership_detail {
namespace {

group party_of(const client& zk, const std::string& path, const acl& entries) {
    group_options options;
    options.names(group_names::kazoo_shallow_party).acl(entries);
    return group(zk, join_path(path, "party"), options);
}

leader_election lock_of(const client& zk, const std::string& path, const std::string& name,
                        const partitioner_options& how) {
    leader_election_options options;
    options.names(name_scheme::kazoo()).id(how.id()).acl(how.acl());
    return leader_election(zk, join_path(join_path(path, "locks"), name), options);
}

// Shows a partition as owned while this object lives.
class owned_entry {
public:
    owned_entry(partition_table& table, const std::string& name) : table_(table), name_(name) { table_.add(name_); }
    owned_entry(const owned_entry&) = delete;
    owned_entry& operator=(const owned_entry&) = delete;
    ~owned_entry() { table_.remove(name_); }

private:
    partition_table& table_;
    const std::string& name_;
};

}  // namespace

// The body runs behind an event that is never fired: so it has a cancellation state of its own. Even if the body
// changes that state, this coroutine is still cancelled afterwards.
asio::awaitable<void> partition_work::serve(std::string name, leadership& term) {
    held_partition mine(name, term);
    const owned_entry entry(table_, name);
    const one_shot_event never = toolbox(zk_).make_one_shot_event();
    auto work = [&] { return body_(mine); };
    co_await never.run_until(work);
    co_await term.lost();
}

// In a new session, no lock keeps this task from working beside an earlier one, whose body has not ended yet.
asio::awaitable<void> partition_work::work_on(std::string name, std::shared_ptr<const order> until) {
    if (until->before) co_await until->before->wait();
    if (until->given) co_return;
    const leader_election lock = lock_of(zk_, path_, name, options_);
    auto term = [&](leadership& leader) { return serve(name, leader); };
    auto lead = [&] { return lock.lead(term, lead_options().requeue().stop_margin(options_.stop_margin())); };
    try {
        co_await until->stop.run_until(lead);
    } catch (const error&) {
        if (!until->given) throw;
    }
}

void partition_work::assign(task_scope& tasks, const std::vector<std::string>& members, bool settled) {
    const std::set<std::string> mine =
        table_.assign(path_, options_.assignment()(options_.id(), members, table_.partitions()), settled);
    std::erase_if(tasks_, [&](const auto& task) {
        if (mine.contains(task.first)) return false;
        task.second->given = true;
        task.second->stop.fire();
        stopped_.insert_or_assign(task.first, task.second->ended);
        return true;
    });
    for (const std::string& name : mine) {
        if (tasks_.contains(name)) continue;
        const auto until = std::make_shared<order>(toolbox(zk_));
        if (const auto earlier = stopped_.extract(name)) until->before = earlier.mapped();
        tasks_.emplace(name, until);
        tasks.spawn(work_on(name, until));
    }
}

// While this member is not seen in the view, it has just lost its session, or has just joined. Its partitions are known
// when it is back, or has been there for a while.
void partition_work::divide_among(task_scope& tasks, const group_view& view, const member_history& history,
                                  boot_clock::time_point now) {
    const std::vector<std::string> members = history.members_at(now);
    const bool settled = history.settled_at(now);
    if (!settled)
        log_warning(zk_,
                    path_ + ": members come and go faster than settle(): divided among the " +
                        std::to_string(members.size()) + " of " + std::to_string(view.members.size()) +
                        " that have been there for that long",
                    {{"path", path_}});
    const bool seen = std::binary_search(members.begin(), members.end(), options_.id());
    if (view.current && seen) assign(tasks, members, settled);
}

asio::awaitable<void> partition_work::divide_until_settled(task_scope& tasks, const group_observer& observer,
                                                           member_history& history, group_view& view) {
    auto next = [&] { return observer.next(); };
    history.see(view, boot_clock::now());
    for (bool settled = false; !settled;) {
        std::optional<group_view> other = co_await run_with_deadline(history.due(), next);
        if (other) {
            view = std::move(*other);
            history.see(view, boot_clock::now());
            continue;
        }
        const auto now = std::max(history.due(), boot_clock::now());
        settled = history.settled_at(now);
        divide_among(tasks, view, history, now);
        history.tried(now);
    }
}

asio::awaitable<void> partition_work::divide(task_scope& tasks) {
    const group party = party_of(zk_, path_, options_.acl());
    const group_membership me = co_await party.join(options_.id());
    tasks.spawn(me.ended());
    const group_observer observer = party.observe();
    member_history history(options_.settle(), options_.settle_at_most());
    group_view view = co_await observer.next();
    for (;;) {
        co_await divide_until_settled(tasks, observer, history, view);
        view = co_await observer.next();
        table_.unsettle();
    }
}

}  // namespace zkasio::membership_detail
