#pragma once

#include "support/test_client.hpp"

#include <zkasio/detail/requests/request_table.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::test {

/// A backend that does nothing and remembers what it was asked for.
class idle_backend final : public detail::backend {
public:
    struct record {
        detail::open_params opened;
        std::vector<std::pair<detail::op_id, detail::request>> submitted;
        std::vector<std::string> calls;
        std::set<std::pair<std::string, detail::watch_kind>> forgotten;  ///< by forget_watch()
        std::vector<std::vector<detail::server_address>> lists;
        std::error_code refuses;  ///< every submit()
        bool settled = true;
        bool open_fails = false, has_socket = true, handshake_sent = false;
        detail::interest next;
        std::string failure = "refused";  ///< the last one
        bool alive = false;
    };
    explicit idle_backend(record& r) : r_(r) { r_.alive = true; }
    ~idle_backend() override { r_.alive = false; }

    void open(const detail::open_params& p) override {
        if (r_.open_fails) throw error(errc::invalid_argument, "open");
        r_.opened = p;
        r_.calls.emplace_back("open");
    }
    bool has_socket() const override { return r_.has_socket; }
    bool handshake_sent() const override { return r_.handshake_sent; }
    detail::interest next_interest() override { return r_.next; }
    detail::drain_result process(bool, bool) override {
        r_.calls.emplace_back("process");
        return detail::drain_result::drained;
    }
    std::error_code submit(detail::op_id id, const detail::request& what) override {
        if (!r_.refuses) r_.submitted.emplace_back(id, what);
        return r_.refuses;
    }
    bool is_settled() const override { return r_.settled; }
    void begin_batch() override { r_.calls.emplace_back("begin"); }
    void end_batch() override { r_.calls.emplace_back("end"); }
    void abort_connection() override { r_.calls.emplace_back("abort"); }
    void set_servers(const std::vector<detail::server_address>& servers) override { r_.lists.push_back(servers); }
    void forget_watch(const std::string& path, detail::watch_kind kind) override {
        r_.calls.push_back("forget " + path);
        r_.forgotten.emplace(path, kind);
    }
    std::int64_t session_id() const override { return 0x77; }
    std::string session_password() const override { return "0123456789abcdef"; }
    std::chrono::milliseconds session_timeout() const override { return std::chrono::seconds(6); }
    std::string last_failure() const override { return r_.failure; }
    std::string current_server() const override { return "10.0.0.1:2181"; }
    bool send_goodbye() override { return false; }
    detail::goodbye_result answer_to_goodbye() override { return detail::goodbye_result::none_yet; }
    void close() override {}

private:
    record& r_;
};

/// A link and a request table, and a test in the place of the core: it says what they are told.
class parts_bench : private detail::link::owner, private detail::request_table::owner {
public:
    explicit parts_bench(client_options o = client_options("10.0.0.1:2181")) : options(std::move(o)) {}

    /// The backend is open, and has a connection.
    void connect() {
        link.resolve();
        link.changed(detail::link_state::connected);
        requests.connected(boot_clock::now());
    }
    void disconnect() {
        link.changed(detail::link_state::disconnected);
        requests.disconnected(boot_clock::now());
    }

    test_loop loop;
    client_options options;
    detail::strand_type strand{loop.executor()};
    std::vector<std::string> lines;
    std::size_t warnings() const { return warnings_; }
    detail::logger log{strand, [this](const log_record& one) {
                           lines.push_back(one.text());
                           if (one.level() == log_level::warning) ++warnings_;
                       }};
    detail::fork_mark here;
    detail::wait_table waits{log, here};
    detail::background_work background{waits};
    detail::auth_list auth{{}};
    idle_backend::record backend;
    detail::session_record_ptr session = std::make_shared<detail::session_record>();

    // What the parts ask, and what they have told.
    std::error_code refused;
    bool lives = true, closing = false, wants = true;
    std::size_t drives = 0, waiting_told = 0, answers_told = 0;
    std::vector<std::function<void()>> later_calls;

    detail::link link{*this, strand, options,
                      [this](detail::backend_listener&) -> std::unique_ptr<detail::backend> {
                          return std::make_unique<idle_backend>(backend);
                      },
                      log};
    detail::telemetry counted{strand, nullptr, {}};
    detail::request_table requests{*this, link, waits, auth, options, log, counted};

private:
    std::shared_ptr<void> keep_alive() override { return alive_; }
    bool wants_connection() override { return wants; }
    detail::open_params to_open() const override { return {}; }
    void on_ready(bool, bool) override {}
    void drive() override { ++drives; }
    void former_session_over() noexcept override {}
    void on_reply(detail::op_id, detail::reply&&) noexcept override {}
    void on_link(detail::link_state) noexcept override {}
    void on_node_event(detail::node_event, std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}
    std::error_code refusal(const detail::session_record*) const override { return refused; }
    bool session_lives() const override { return lives; }
    const detail::session_record_ptr& current_session() const override { return session; }
    std::int64_t id_of(const detail::session_record& s) const noexcept override { return s.session_id; }
    bool is_closing() const override { return closing; }
    void request_waits() override { ++waiting_told; }
    void request_answered(const detail::request&, const detail::reply&, boot_clock::time_point,
                          boot_clock::time_point) override {
        ++answers_told;
    }
    detail::background_work& work() override { return background; }
    void later(std::function<void()> f) override { later_calls.push_back(std::move(f)); }

    std::size_t warnings_ = 0;
    std::shared_ptr<void> alive_ = std::make_shared<int>();
};

}  // namespace zkasio::test
