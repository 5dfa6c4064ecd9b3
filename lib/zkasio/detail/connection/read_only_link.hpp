#pragma once

#include <zkasio/detail/connection/link.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// A connection to a server without a quorum, for reads while the client's own link is not connected: see
/// client_options::allow_read_only().
///
/// The session of the client takes no part in it. A read-only server refuses the sessions of the ensemble, and says of
/// a session that it has not heard of that it has expired; and its answers prove nothing about any session. So this
/// connection has a session of its own, which only that server knows, and which ends with the connection. The client's
/// own link goes on trying in the meantime, and so finds the quorum. On the strand.
class read_only_link final : private link::owner {
public:
    using clock = boot_clock;
    using time_point = clock::time_point;

    class owner {
    public:
        virtual std::shared_ptr<void> keep_alive() = 0;
        /// Whether there is a use for a read-only server now.
        virtual bool wants_read_only() = 0;
        virtual std::vector<add_auth_request> credentials() const = 0;
        /// The socket is ready: a turn begins, which calls process().
        virtual void on_ready_read_only(bool readable, bool writable) = 0;
        /// There is news: a turn ends.
        virtual void drive() = 0;
        virtual void on_reply(op_id id, reply&& r) noexcept = 0;
        virtual void read_only_up() noexcept = 0;
        /// Requests under way end with connection_loss before or after this.
        virtual void read_only_down() noexcept = 0;
        virtual void on_log(std::string_view line) noexcept = 0;

    protected:
        ~owner() = default;
    };

    read_only_link(owner& o, const strand_type& strand, const client_options& options, backend_factory factory,
                   const logger& log)
        : owner_(o), link_(*this, strand, options, std::move(factory), log) {}

    void start(reactor_mark reactor) { link_.start(std::move(reactor)); }
    void set_servers(server_list servers) {
        link_.set_servers(std::move(servers));
        if (trying_) link_.resolve();
    }

    /// Whether a server is connected.
    bool is_up() const noexcept { return up_; }
    /// Only while it is up.
    detail::backend& backend() const noexcept { return link_.backend(); }

    void process(bool readable, bool writable);
    /// The end of a turn: connects if the owner wants a read-only server, and disconnects if not.
    void pump(time_point now);
    void on_time(time_point now);
    time_point due() const noexcept;
    /// Disconnects.
    void stop();
    /// Disconnects, and tells nothing of it but the ends of requests under way.
    void retire();

private:
    void pause(time_point now);
    std::shared_ptr<void> keep_alive() override { return owner_.keep_alive(); }
    bool wants_connection() override { return owner_.wants_read_only(); }
    open_params to_open() const override;
    void on_ready(bool readable, bool writable) override { owner_.on_ready_read_only(readable, writable); }
    void drive() override { owner_.drive(); }
    void former_session_over() noexcept override {}
    void on_reply(op_id id, reply&& r) noexcept override;
    void on_link(link_state s) noexcept override;
    void on_node_event(node_event, std::string_view) noexcept override {}  // no watches are set there
    void on_log(std::string_view line) noexcept override { owner_.on_log(line); }

    owner& owner_;
    link link_;
    bool up_ = false;
    bool trying_ = false;  // since resolve(), until stop()
    bool over_ = false;    // the session is: nothing but stop() follows
    int losses_ = 0;       // since the last answer, 6 at most
    time_point not_before_{};
};

}  // namespace zkasio::detail
