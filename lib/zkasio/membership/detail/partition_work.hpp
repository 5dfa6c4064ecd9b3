#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/membership/detail/division.hpp>
#include <zkasio/membership/detail/partition_table.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zkasio::membership_detail {

/// One partitioner::run(): a task for each partition that is assigned to this member. On the strand of its task scope;
/// lives for as long as the scope.
class partition_work {
public:
    partition_work(const partition_body& body, client zk, std::string path, partitioner_options options,
                   partition_table& table)
        : body_(body), zk_(std::move(zk)), path_(std::move(path)), options_(std::move(options)), table_(table) {}

    /// Joins the group, and starts and stops tasks as members come and go.
    asio::awaitable<void> divide(task_scope& tasks);

private:
    enum class role_of_task {
        is_assigned,
        stands_in,  // D3: waits until nobody else works on the partition
        has_taken,  // a stand-in that works on it
    };

    // Tells a task to give its partition up, and when it has ended.
    struct order {
        order(const toolbox& tools, role_of_task r)
            : stop(tools.make_one_shot_event()), ended(tools.make_one_shot_event()), role(r) {}
        ~order() { ended.fire(); }
        order(const order&) = delete;
        order& operator=(const order&) = delete;
        const one_shot_event stop, ended;
        std::optional<one_shot_event> before;  // the end of an earlier task of this partition
        bool given = false;
        role_of_task role;
    };

    asio::awaitable<void> divide_for_ever(task_scope& tasks);
    void warn_of_unread_members() const;
    std::chrono::nanoseconds patience() const noexcept;
    asio::awaitable<void> divide_until_settled(task_scope& tasks, const group_observer& observer,
                                               member_history& history, group_view& view);
    void divide_among(task_scope& tasks, const group_view& view, const member_history& history,
                      boot_clock::time_point now);
    void assign(task_scope& tasks, const division& how, bool settled);
    bool goes_on(order& task, const std::string& name, const division& how, const std::set<std::string>& mine);
    void start(task_scope& tasks, const std::string& name, role_of_task role);
    asio::awaitable<void> work_on(std::string name, std::shared_ptr<order> until);
    asio::awaitable<void> until_nobody_stands_for(std::string name) const;
    asio::awaitable<bool> take_if_left(std::string name, std::shared_ptr<order> until);
    asio::awaitable<void> serve(std::string name, leadership& term, std::exception_ptr& thrown);

    const partition_body& body_;
    const client zk_;
    const std::string path_;
    const partitioner_options options_;
    partition_table& table_;
    std::map<std::string, std::shared_ptr<order>> tasks_;  // without those that were told to stop
    std::map<std::string, one_shot_event> stopped_;        // the ends of the newest ones that were
    std::string difference_;                               // between the members' lists, at the last division
};

}  // namespace zkasio::membership_detail
