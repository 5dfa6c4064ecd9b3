#include <zkasio/membership/detail/partition_work.hpp>

#include <zkasio/cache/streams.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace zkasio::membership_detail {
namespace {

group party_of(const client& zk, const std::string& path, const acl& entries) {
    group_options options;
    options.names(group_names::kazoo_shallow_party_with_data).acl(entries);
    return group(zk, join_path(path, "party"), options);
}

std::string lock_path(const std::string& path, const std::string& name) {
    return join_path(join_path(path, "locks"), name);
}

leader_election lock_of(const client& zk, const std::string& path, const std::string& name,
                        const partitioner_options& how) {
    leader_election_options options;
    options.names(name_scheme::kazoo()).id(how.id()).acl(how.acl());
    return leader_election(zk, lock_path(path, name), options);
}

// The members among which is divided, with their plans. @param ids sorted
std::vector<planning_member> planning_members(const group_view& view, const std::vector<std::string>& ids) {
    std::vector<planning_member> members;
    for (const member_info& m : view.members)
        if (std::binary_search(ids.begin(), ids.end(), m.id)) members.push_back({m.id, parse_plan(m.data)});
    return members;
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
// @param thrown by the body.
asio::awaitable<void> partition_work::serve(std::string name, leadership& term, std::exception_ptr& thrown) {
    held_partition mine(name, term);
    const owned_entry entry(table_, name);
    const one_shot_event never = toolbox(zk_).make_one_shot_event();
    const std::function<asio::awaitable<void>()> bound = [&] { return body_(mine); };
    auto work = lock_detail::noting(bound, thrown);
    co_await never.run_until(work);
    co_await term.lost();
}

// Completes when no member has stood for the partition's lock for settle(). While the queue may not be read, some
// member may stand there.
asio::awaitable<void> partition_work::until_nobody_stands_for(std::string name) const {
    const children_stream queue = watch_children(zk_, lock_path(path_, name));
    for (bool is_free = false; !is_free;) {
        try {
            const std::optional<node_children> there = co_await queue.settled(options_.settle());
            is_free = !there || there->names.empty();
        } catch (const error& e) {
            if (e.code() != zk_errc::no_auth) throw;
        }
    }
}

// False: this member is to stand in for the partition no longer.
asio::awaitable<bool> partition_work::take_if_left(std::string name, std::shared_ptr<order> until) {
    auto is_left = [&] { return until_nobody_stands_for(name); };
    const bool left = co_await until->stop.run_until(is_left);
    if (!left || until->given) co_return false;
    until->role = role_of_task::has_taken;
    table_.take(name);
    log_warning(zk_,
                path_ + ": no other member works on the partition '" + name + "', so " + options_.id() +
                    " takes it; " + difference_,
                {{"path", path_}});
    co_return true;
}

// In a new session, no lock keeps this task from working beside an earlier one, whose body has not ended yet.
asio::awaitable<void> partition_work::work_on(std::string name, std::shared_ptr<order> until) {
    if (until->before) co_await until->before->wait();
    if (until->given) co_return;
    if (until->role == role_of_task::stands_in) {
        const bool taken = co_await take_if_left(name, until);
        if (!taken) co_return;
    }
    const leader_election lock = lock_of(zk_, path_, name, options_);
    std::exception_ptr of_body;
    auto term = [&](leadership& leader) { return serve(name, leader, of_body); };
    auto lead = [&] { return lock.lead(term, lead_options().requeue().stop_margin(options_.stop_margin())); };
    try {
        co_await until->stop.run_until(lead);
    } catch (const error&) {
        if (until->given) co_return;
        if (std::current_exception() == of_body) throw;
        rethrow_as("partitioner", path_);
    }
}

// Whether a task goes on as it is. The task of a stand-in that has taken its partition keeps it; of one that has not,
// and is assigned the partition now, another task takes the place, which does not wait.
bool partition_work::goes_on(order& task, const std::string& name, const division& how,
                             const std::set<std::string>& mine) {
    if (mine.contains(name)) {
        if (task.role == role_of_task::stands_in) return false;
        task.role = role_of_task::is_assigned;
        return true;
    }
    if (task.role == role_of_task::is_assigned || !how.stands_in_for.contains(name)) return false;
    if (task.role == role_of_task::has_taken) table_.take(name);
    return true;
}

void partition_work::start(task_scope& tasks, const std::string& name, role_of_task role) {
    if (tasks_.contains(name)) return;
    const auto until = std::make_shared<order>(toolbox(zk_), role);
    if (const auto earlier = stopped_.extract(name)) until->before = earlier.mapped();
    tasks_.emplace(name, until);
    tasks.spawn(work_on(name, until));
}

void partition_work::assign(task_scope& tasks, const division& how, bool settled) {
    const std::set<std::string> mine = table_.assign(path_, how.assigned, settled);
    std::erase_if(tasks_, [&](const auto& task) {
        if (goes_on(*task.second, task.first, how, mine)) return false;
        task.second->given = true;
        task.second->stop.fire();
        stopped_.insert_or_assign(task.first, task.second->ended);
        return true;
    });
    for (const std::string& name : mine) start(tasks, name, role_of_task::is_assigned);
    for (const std::string& name : how.stands_in_for) start(tasks, name, role_of_task::stands_in);
}

// While this member is not seen among the others, it has just lost its session, or has just joined. Its partitions are
// known when it is back, or has been there for a while.
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
    if (!std::binary_search(members.begin(), members.end(), options_.id())) return;
    const division how = membership_detail::divide(options_, planning_members(view, members), table_.partitions());
    if (std::exchange(difference_, how.difference) != how.difference && !how.difference.empty())
        log_warning(zk_, path_ + ": " + how.difference, {{"path", path_}});
    assign(tasks, how, settled);
}

// Of an outage, and of a connection that breaks again and again: the client's own lines do not tell what follows.
void partition_work::warn_of_unread_members() const {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience()).count();
    log_warning(zk_,
                path_ + ": what is assigned to " + options_.id() + " may have no owner: for " +
                    std::to_string(seconds) + " s no connection has lasted until the members were read",
                {{"path", path_}});
}

std::chrono::nanoseconds partition_work::patience() const noexcept {
    constexpr std::chrono::seconds least(10);
    return std::max<std::chrono::nanoseconds>(options_.settle_at_most(), least);
}

// Members that may have gone are not divided among: while the view is not current, the next one is waited for.
asio::awaitable<void> partition_work::divide_until_settled(task_scope& tasks, const group_observer& observer,
                                                           member_history& history, group_view& view) {
    auto next = [&] { return observer.next(); };
    auto overdue = boot_clock::after(patience());
    history.see(view, boot_clock::now());
    for (bool settled = false; !settled;) {
        const auto due = view.current ? history.due() : overdue;
        std::optional<group_view> other = co_await run_with_deadline(due, next);
        if (other) {
            if (view.current) overdue = boot_clock::after(patience());
            view = std::move(*other);
            history.see(view, boot_clock::now());
            continue;
        }
        if (!view.current) {
            warn_of_unread_members();
            overdue = boot_clock::time_point::max();
            continue;
        }
        const auto now = std::max(due, boot_clock::now());
        settled = history.settled_at(now);
        divide_among(tasks, view, history, now);
        history.tried(now);
    }
}

asio::awaitable<void> partition_work::divide(task_scope& tasks) {
    return errors_as("partitioner", path_, divide_for_ever(tasks));
}

asio::awaitable<void> partition_work::divide_for_ever(task_scope& tasks) {
    const group party = party_of(zk_, path_, options_.acl());
    const std::string plan = to_text(plan_of(options_, table_.partitions()));
    const group_membership me = co_await party.join(options_.id(), plan);
    tasks.spawn(errors_as("partitioner", path_, me.ended()));
    const group_observer observer = party.observe();
    member_history history(options_.settle(), options_.settle_at_most());
    group_view view;
    for (;;) {
        co_await divide_until_settled(tasks, observer, history, view);
        view = co_await observer.next();
        table_.unsettle();
    }
}

}  // namespace zkasio::membership_detail
