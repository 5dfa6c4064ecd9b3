#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/client_over.hpp"

#include <zkasio/detail/base/random_engine.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/testing/detail/virtual_clock.hpp>

#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>

namespace zkasio::test {
namespace {

constexpr std::size_t log_lines = 400;
constexpr std::uint64_t most_steps = 200'000;

// No timer of the client's takes part: what it waits for happens, or is made to happen, in far less time.
client_options patient(std::chrono::milliseconds session_timeout) {
    using namespace std::chrono_literals;
    return client_options("10.0.0.1:2181")
        .session_timeout(session_timeout)
        .connection_timeout(10min)
        .close_timeout(10min)
        .retry(detail::access::make<retry_policy>(0ms))
        .log(nullptr);
}

std::uint64_t seeds_in(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

asio::awaitable<void> close_client(client zk) { co_await zk.close(); }

}  // namespace

simulation::simulation(std::uint64_t seed, logging log) : simulation(seed, log, nullptr) {}
simulation::simulation(scheduler& by, logging log) : simulation(1, log, &by) {}

simulation::simulation(std::uint64_t seed, logging log, scheduler* by)
    : log_wanted_(log),
      renewal_(by ? lease_renewal::quarter : static_cast<lease_renewal>(2 + seed % 3)),
      random_(seed),
      lateness_(~seed),
      scheduler_(by) {
    detail::random_engine().seed(seed);
    detail::jitter_engine().seed(seed);  // where time passes, pauses decide, too
    ensemble.pick = [this](std::size_t below) { return pick(below); };
    if (log == logging::on) ensemble.on_log = [this](std::string line) { write_down(std::move(line)); };
    choose = [this](const std::vector<sim_ensemble::step>& steps) { return pick(steps.size()); };
    testing_detail::count_readable(ensemble.readable_links());
}

simulation::~simulation() {
    testing_detail::count_readable(nullptr);
    ensemble.on_commit = [](const sim_txn&) {};
    ensemble.on_log = {};
    for (user& u : users_) u.handlers->on_posted = [] {};
    for (user& u : users_) u.handlers->close();
}

std::size_t simulation::pick(std::size_t below) {
    return scheduler_ ? 0 : static_cast<std::size_t>(random_() % below);
}

client simulation::add_client(suspension_policy when_suspended) {
    const int number = clients();
    client_options how = patient(ensemble.session_timeout).suspension(when_suspended).lease_renewal(renewal_);
    cores_.push_back(std::make_shared<detail::core>(executor(), std::move(how), ensemble.factory(number)));
    clients_.push_back(client_over(cores_.back()));
    return clients_.back();
}

void simulation::let_users_be_late() { users_are_late_ = scheduler_ || draw(2) == 0; }

void simulation::draw_version_of_servers() {
    ensemble.know_multi_read = draw(3) > 0;
    ensemble.hang_up_at_unknown = false;
    ensemble.one_watch_at_a_path = draw(2) == 0;
}

asio::any_io_executor simulation::user_executor(int client) {
    if (!users_are_late_) return executor();
    if (scheduler_) {
        user& u = users_.emplace_back();
        u.client = client;
        u.handlers->on_posted = [this, &u] { run_later(u); };
        return late_executor(io_, u.handlers);
    }
    if (draw(4) == 0) return executor();
    if (users_.empty() || draw(3) > 0) {
        user& u = users_.emplace_back();
        u.percent = std::array<std::size_t, 3>{10, 50, 100}[draw(3)];
        u.longest = std::array<std::size_t, 3>{3, 20, 100}[draw(3)];
        u.handlers->on_posted = [this, &u] { run_later(u); };
    }
    return late_executor(io_, (draw(3) > 0 ? users_.back() : users_[draw(users_.size())]).handlers);
}

void simulation::run_later(user& u) {
    if (std::exchange(u.will_run, true)) return;
    ++late_;
    if (scheduler_) return add_event(u.client, [this, &u] { run_one(u); });
    clients_run_ = true;
    if (draw(100) < u.percent)
        after(1 + draw(u.longest), [this, &u] { run_now(u); });
    else
        asio::post(io_, [this, &u] { run_now(u); });
}

// As many handlers as have come by then, or fewer: then the others wait for another turn.
void simulation::run_now(user& u) {
    for (std::size_t handlers = 1 + draw(3); handlers > 0 && u.handlers->run_one(); --handlers) {
    }
    --late_;
    u.will_run = false;
    if (u.handlers->size() > 0) run_later(u);
}

void simulation::run_one(user& u) {
    u.handlers->run_one();
    --late_;
    u.will_run = false;
    if (u.handlers->size() > 0) run_later(u);
}

void simulation::spawn(asio::any_io_executor on, asio::awaitable<void> task) {
    clients_run_ = true;
    asio::co_spawn(on, std::move(task), [this](std::exception_ptr e) {
        if (e && !failed_) failed_ = e;
    });
}

void simulation::after(std::size_t steps, std::function<void()> what, int client) {
    if (scheduler_) return add_event(client, std::move(what), true);
    events_.emplace(now_ + steps, std::move(what));
}

asio::awaitable<void> simulation::pause(std::size_t steps, int client) {
    const auto timer = std::make_shared<asio::steady_timer>(io_, asio::steady_timer::time_point::max());
    const auto wake = [timer] { timer->cancel(); };
    if (scheduler_)
        add_event(client, wake);
    else
        after(steps, wake, client);
    std::error_code woken;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void simulation::write_down(std::string line) {
    constexpr std::size_t id_length = 40;  // "_c_<uuid>-" is of no interest
    for (std::size_t at; (at = line.find("_c_")) != std::string::npos && at + id_length <= line.size();)
        line.erase(at, id_length);
    log_.push_back(std::to_string(now_) + ' ' + std::move(line));
    if (log_.size() > log_lines) log_.pop_front();
}

std::vector<std::string> simulation::children(const std::string& directory) const {
    if (!ensemble.tree().find(directory)) return {};
    return ensemble.tree().children(directory);
}

void simulation::delete_child_of(const std::string& directory) {
    const std::vector<std::string> names = children(directory);
    if (names.empty()) return;
    const std::string path = directory + '/' + names[pick(names.size())];
    note("an operator deletes ", path);
    ensemble.operate(detail::remove_request{path, any_version});
}

std::string simulation::tail(std::size_t newest) const {
    std::string text;
    for (std::size_t i = log_.size() - std::min(newest, log_.size()); i < log_.size(); ++i) text += log_[i] + '\n';
    return text;
}

void simulation::settle() {
    clients_run_ = false;
    io_.restart();
    io_.poll();
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

bool simulation::step() {
    if (scheduler_) return step_as_told();
    if (clients_run_) settle();
    on_idle();
    if (++now_ > most_steps) throw violation("it goes on for ever");
    const std::vector<sim_ensemble::step>& steps = possible_;
    ensemble.list_steps(possible_);
    if (steps.empty() && late_ == 0) on_quiet();
    if (!events_.empty() && (steps.empty() || events_.begin()->first <= now_)) {
        now_ = std::max(now_, events_.begin()->first);
        const auto next = events_.extract(events_.begin());
        clients_run_ = true;
        next.mapped()();
        return true;
    }
    if (steps.empty()) return false;
    const sim_ensemble::step chosen = steps[choose(steps)];
    ensemble.take(chosen);
    // Several answers may reach a client in one turn of its loop.
    clients_run_ = chosen.what == sim_ensemble::step::kind::deliver;
    if (clients_run_)
        for (std::size_t more = pick(3); more > 0 && ensemble.answers_under_way(chosen.client) > 0; --more)
            ensemble.take(chosen);
    return true;
}

void simulation::run() {
    settle();
    while (step()) {
    }
}

void simulation::nothing_pending() {
    for (int n = 0; n < clients(); ++n) {
        if (inside(n).pending_operations() != 0) throw violation("an operation is left at client " + std::to_string(n));
        if (inside(n).watches() != 0) throw violation("a watch is left at client " + std::to_string(n));
    }
    if (ensemble.watches() != 0) throw violation("a watch is left at the servers");
}

void simulation::close() {
    nothing_pending();
    for (int n = 0; n < clients(); ++n) spawn(close_client(client_number(n)));
    run();
    nothing_pending();
    if (ensemble.backends_alive() != 0) throw violation("a connection is left");
    if (ensemble.sessions() != 0) throw violation("a session is left");
}

namespace {

// What it violates; empty: nothing.
std::string violated(simulation& s, const std::function<void(simulation&)>& scenario) {
    try {
        scenario(s);
    } catch (const std::exception& e) {
        return *e.what() ? e.what() : "an exception without words";
    }
    return {};
}

// A test's name as a test spec of Catch2: there a comma means "or".
std::string as_test_spec(const std::string& name) {
    std::string spec;
    for (const char c : name) {
        if (c == ',' || c == '\\' || c == '[' || c == '"') spec += '\\';
        spec += c;
    }
    return spec;
}

// Not by Catch2, which breaks lines.
void print_command_for(std::uint64_t seed) {
    // Catch2 3 needs no telling that it is a failure when no test has that name.
    const char* const strict = CATCH_VERSION_MAJOR < 3 ? " -w NoTests" : "";
    std::cout << "\nagain: ZKASIO_SIM_SEED=" << seed << ' ' << program_invocation_name << strict << " '"
              << as_test_spec(Catch::getResultCapture().getCurrentTestName()) << "'\n"
              << std::flush;
}

}  // namespace

void run_seed(const std::string& name, std::uint64_t seed, const std::function<void(simulation&)>& scenario) {
    INFO(name << ", seed " << seed);
    std::string failed;
    try {
        simulation s(seed);
        failed = violated(s, scenario);
    } catch (...) {  // a REQUIRE
        print_command_for(seed);
        throw;
    }
    if (failed.empty()) return;
    print_command_for(seed);
    simulation again(seed, simulation::logging::on);
    const std::string repeated = violated(again, scenario);
    const std::string doubt =
        repeated == failed ? "" : "\nBUT WHEN REPEATED: " + (repeated.empty() ? "it did not fail" : repeated);
    FAIL(failed << doubt << "\n" << again.tail());
}

void run_few_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario) {
    const std::uint64_t only = seeds_in("ZKASIO_SIM_SEED", 0);
    const std::uint64_t first = only != 0 ? only : seeds_in("ZKASIO_SIM_FIRST_SEED", 1);
    const std::uint64_t count = only != 0 ? 1 : seeds;
    for (std::uint64_t seed = first; seed - first < count; ++seed) run_seed(name, seed, scenario);
    CHECK(count > 0);
}

void run_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario) {
    const std::uint64_t count = seeds_in("ZKASIO_SIM_SEEDS", seeds);
    const auto began = std::chrono::steady_clock::now();
    run_few_seeds(name, count, scenario);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (count != seeds && seeds_in("ZKASIO_SIM_SEED", 0) == 0)
        WARN(name << ": " << count << " seeds, " << static_cast<double>(count) / took.count() << " a second");
}

}  // namespace zkasio::test
