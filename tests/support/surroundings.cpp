#include "support/surroundings.hpp"

#include "support/client_over.hpp"
#include "support/pace.hpp"
#include "support/test_server.hpp"
#include "support/transport.hpp"

#include <zkasio/detail/client/core.hpp>
#include <zkasio/testing/waits.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace zkasio::test {
namespace {

class real_loop final : public event_loop {
public:
    asio::io_context& context() override { return io_; }
    bool run_dry(const std::chrono::steady_clock::time_point& give_up) override {
        io_.restart();
        while (io_.run_one_until(give_up) != 0) {
        }
        return io_.stopped();
    }

private:
    asio::io_context io_;
};

class real_network final : public faulty_network {
public:
    explicit real_network(const std::string& server) : proxy_(server) {}
    std::string address() const override { return proxy_.address(); }
    void plan_connections(std::function<testing::proxy::plan(std::size_t)> planner) override {
        proxy_.plan_connections(std::move(planner));
    }
    void cut_all(testing::proxy::end how) override { proxy_.cut_all(how); }
    void refuse(bool on) override { proxy_.refuse(on); }
    void silence(bool on) override { proxy_.silence(on); }
    void delay(std::chrono::milliseconds each_way) override { proxy_.delay(each_way); }
    std::size_t connections() const override { return proxy_.connections(); }

private:
    testing::proxy proxy_;
};

bool own_server_runs = false;

const test_server& own_server() {
    static const test_server one;
    own_server_runs = true;
    return one;
}

// Empty: there are none, or they cannot be reached in this program's way.
std::string given_servers() {
    const char* const given = std::getenv("ZKASIO_TEST_SERVERS");
    return given && !transport::current().is_secure() ? given : "";
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(at, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

class real_surroundings final : public surroundings {
public:
    bool has_real_time() const override { return true; }
    std::string servers() override {
        return given_servers().empty() ? own_server().connect_string() : given_servers();
    }
    bool has_own_server() const override { return own_server_runs; }
    std::unique_ptr<event_loop> make_loop() override { return std::make_unique<real_loop>(); }
    client make_client(asio::any_io_executor executor, client_options options) override {
        return client_over(
            std::make_shared<detail::core>(std::move(executor), std::move(options), &detail::make_c_backend));
    }
    std::unique_ptr<faulty_network> make_network(const std::string& server) override {
        return std::make_unique<real_network>(server);
    }
    asio::awaitable<void> expire_session(client victim) override {
        return testing::expire_session(std::move(victim), paced(testing::patience));
    }
    std::vector<std::string> watched_paths() override {
        std::vector<std::string> paths;
        for (std::string& line : ask_all("wchp"))
            if (line.starts_with("/")) paths.push_back(std::move(line));
        return paths;
    }
    std::vector<std::string> kept_by_servers() override {
        std::vector<std::string> kept;
        if (!owns_any()) return kept;
        bool is_ephemeral = false;
        for (std::string& line : ask_all("dump")) {
            is_ephemeral = is_ephemeral || line.starts_with("ephemeral nodes dump");
            if (line.starts_with("Connections")) is_ephemeral = false;
            line.erase(0, line.find_first_not_of("\t "));
            if (is_ephemeral && owns(line)) kept.push_back("node " + line);
        }
        for (const std::string& path : watched_paths())
            if (owns(path)) kept.push_back("watch of " + path);
        return kept;
    }
    long requests_of(const session& s) override {
        char id[20];
        std::snprintf(id, sizeof id, "0x%llx", static_cast<unsigned long long>(s.id()));
        for (const std::string& line : ask_all("cons"))
            if (line.find(std::string("sid=") + id + ",") != std::string::npos)
                return std::stol(line.substr(line.find("recved=") + 7));
        return -1;
    }

private:
    // The lines of the answers of all servers, one after another.
    static std::vector<std::string> ask_all(const std::string& four_letters) {
        std::vector<std::string> lines;
        for (const std::string& server : split(shared_servers(), ','))
            for (std::string& line : split(four_letter_command(server, four_letters), '\n'))
                lines.push_back(std::move(line));
        return lines;
    }
};

// No object of this file, whose turn would come when it likes.
surroundings*& surroundings_in_use() noexcept {
    static surroundings* one = nullptr;
    return one;
}

}  // namespace

surroundings& surroundings::current() noexcept {
    static real_surroundings otherwise;
    return surroundings_in_use() ? *surroundings_in_use() : otherwise;
}

void surroundings::use(surroundings& s) noexcept { surroundings_in_use() = &s; }

void surroundings::own(std::string directory) {
    const std::lock_guard lock(owned_mutex_);
    owned_.push_back(std::move(directory));
}

bool surroundings::owns_any() const {
    const std::lock_guard lock(owned_mutex_);
    return !owned_.empty();
}

bool surroundings::owns(const std::string& path) const {
    const std::lock_guard lock(owned_mutex_);
    const auto is_or_above = [&path](const std::string& d) { return path == d || path.starts_with(d + "/"); };
    return std::any_of(owned_.begin(), owned_.end(), is_or_above);
}

std::string ask_first_server(const std::string& four_letters) {
    return given_servers().empty() ? own_server().ask(four_letters) : four_letter_command(first_server(), four_letters);
}

}  // namespace zkasio::test
