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
#include <iterator>
#include <optional>
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

const test_server& own_server() {
    static const test_server one;
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
        std::string all = given_servers().empty() ? own_server().connect_string() : given_servers();
        if (!kept_before_) kept_before_ = kept_by(all);
        return all;
    }
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
        std::vector<std::string> more;
        if (!kept_before_) return more;
        const std::vector<std::string> now = kept_by(servers());
        std::set_difference(now.begin(), now.end(), kept_before_->begin(), kept_before_->end(),
                            std::back_inserter(more));
        return more;
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
    // Sorted. A session without a connection ends by itself; one without a node may be left by an attempt to connect.
    static std::vector<std::string> kept_by(const std::string& servers) {
        std::vector<std::string> kept;
        bool is_ephemeral = false;
        for (std::string& line : ask_all("dump", servers)) {
            is_ephemeral = is_ephemeral || line.starts_with("ephemeral nodes dump");
            if (line.starts_with("Connections")) is_ephemeral = false;
            line.erase(0, line.find_first_not_of("\t "));
            if (is_ephemeral && line.starts_with("/")) kept.push_back("node " + line);
        }
        for (const std::string& line : ask_all("cons", servers))
            if (const auto sid = line.find("sid="); sid != line.npos)
                kept.push_back("session " + line.substr(sid, line.find(',', sid) - sid));
        for (const std::string& line : ask_all("wchp", servers))
            if (line.starts_with("/")) kept.push_back("watch of " + line);
        std::sort(kept.begin(), kept.end());
        return kept;
    }

    // The lines of the answers of all servers, one after another.
    static std::vector<std::string> ask_all(const std::string& four_letters,
                                            const std::string& servers = shared_servers()) {
        std::vector<std::string> lines;
        for (const std::string& server : split(servers, ','))
            for (std::string& line : split(four_letter_command(server, four_letters), '\n'))
                lines.push_back(std::move(line));
        return lines;
    }

    std::optional<std::vector<std::string>> kept_before_;
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

std::string ask_first_server(const std::string& four_letters) {
    return given_servers().empty() ? own_server().ask(four_letters) : four_letter_command(first_server(), four_letters);
}

}  // namespace zkasio::test
