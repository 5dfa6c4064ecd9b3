#pragma once

#include <zkasio/client_options.hpp>
#include <zkasio/detail/requests/request_table.hpp>
#include <zkasio/detail/session/session_record.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// Renews the lease of a session for its holds, and ends a hold when the lease ends or one of the hold's nodes is gone.
/// Uses heartbeats, reads while no other request is sent, and watches on the nodes. On the strand.
class hold_keeper {
public:
    using clock = boot_clock;
    using time_point = clock::time_point;

    class owner {
    public:
        virtual const session_record_ptr& current_session() const = 0;
        virtual bool is_closing() const = 0;
        /// due() may be earlier now.
        virtual void timer_changed() = 0;

    protected:
        ~owner() = default;
    };

    hold_keeper(owner& o, link& l, request_table& requests, wait_table& waits, const client_options& options,
                const logger& log)
        : owner_(o), link_(l), requests_(requests), waits_(waits), options_(options), log_(log) {}

    // ------------------------------------------------------------------------------------------------------ holds
    /// The hold is valid from now on, or ends at once. The hold is not confirmed before the lease covers it.
    void add(const hold_ptr& h);
    enum class own_nodes { stay, are_removed };
    /// @param lost the node that is gone, of `h` or of a part of it.
    /// @param then whether the caller removes the nodes of `h`: with a node, its watch goes.
    void end(const hold_ptr& h, loss_reason why, const hold::own_node* lost = nullptr,
             own_nodes then = own_nodes::stay);
    void end_all(session_record& of, loss_reason why);
    /// Watches the nodes of the hold at once, or as soon as there is a connection.
    void watch(const hold_ptr& h);
    /// The next heartbeat checks the nodes of the hold, and goes out as soon as it may.
    void check(const hold_ptr& h);

    // -------------------------------------------------------------------------------------------- what the link tells
    void connected(time_point now);
    void disconnected(session_record& s);
    /// The end of the lease has moved.
    void lease_changed(session_record& s);
    /// Ends the holds whose lease has ended. Called before any answer that was received is trusted (fact 25).
    void check_lease(time_point now);

    // -------------------------------------------------------------------------------------------------- the timer
    void on_time(time_point now);
    time_point due(time_point now) const;

    /// How many reads that are sent while no other request is sent (see lease) are under way.
    std::size_t own_reads() const noexcept { return static_cast<std::size_t>(own_read_.use_count()) - 1; }

    /// Drops all holds without completing anything.
    void let_go(session_record& s);

private:
    using checked_nodes = std::vector<std::pair<hold_ptr, hold::own_node*>>;

    void confirm(session_record& s);
    void heartbeat(time_point now);
    std::pair<multi_request, checked_nodes> next_check(session_record& s) const;
    void heartbeat_answered(session_record& s, const checked_nodes& checked, const reply& r);
    time_point heartbeat_due(time_point now) const;
    void read_when_idle(time_point now);
    time_point own_read_due() const;
    void watch_own_nodes(time_point now);
    void watch_own_node(const hold_ptr& h, hold::own_node& node);
    void watch_answered(const hold_ptr& h, hold::own_node& node, const watch_ptr& w, const reply& r);

    owner& owner_;
    link& link_;
    request_table& requests_;
    wait_table& waits_;
    const client_options& options_;
    const logger& log_;
    const std::shared_ptr<const void> own_read_ = std::make_shared<char>();  // each of these reads has a copy
    time_point synced_{};  // or connected: when what the leader hears of was sent last
};

}  // namespace zkasio::detail
