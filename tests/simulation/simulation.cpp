#include "simulation/simulation.hpp"

#include "support/catch.hpp"

#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdlib>

namespace zkasio::test {
namespace {

constexpr std::size_t log_lines = 400;
constexpr std::uint64_t most_steps = 200'000;

// No timer of the client's takes part: what it waits for happens, or is made to happen, in far less time.
client_options patient() {
    using namespace std::chrono_literals;
    return client_options("10.0.0.1:2181")
        .session_timeout(10min)
        .connection_timeout(10min)
        .close_timeout(10min)
        .retry(retry_policy::n_times(1'000'000, 0ms));
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

asio::awaitable<void> close_client(client zk) { co_await zk.close(); }

}  // namespace

simulation::simulation(std::uint64_t seed) : random_(seed) {
    ensemble.pick = [this](std::size_t below) { return pick(below); };
    ensemble.on_log = [this](std::string line) { note(std::move(line)); };
    choose = [this](const std::vector<sim_ensemble::step>& steps) { return pick(steps.size()); };
}

simulation::~simulation() {
    ensemble.on_commit = [](const sim_txn&) {};
    ensemble.on_log = [](const std::string&) {};
}

std::size_t simulation::pick(std::size_t below) { return static_cast<std::size_t>(random_() % below); }

client simulation::add_client() {
    const int number = clients();
    cores_.push_back(std::make_shared<detail::core>(executor(), patient(), ensemble.factory(number)));
    clients_.emplace_back(cores_.back());
    return clients_.back();
}

void simulation::spawn(asio::awaitable<void> task) {
    asio::co_spawn(io_, std::move(task), [this](std::exception_ptr e) {
        if (e && !failed_) failed_ = e;
    });
}

void simulation::after(std::size_t steps, std::function<void()> what) { events_.emplace(now_ + steps, std::move(what)); }

asio::awaitable<void> simulation::pause(std::size_t steps) {
    const auto timer = std::make_shared<asio::steady_timer>(io_, asio::steady_timer::time_point::max());
    after(steps, [timer] { timer->cancel(); });
    std::error_code woken;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void simulation::note(std::string line) {
    constexpr std::size_t id_length = 40;  // "_c_<uuid>-" is of no interest
    for (std::size_t at; (at = line.find("_c_")) != std::string::npos && at + id_length <= line.size();) line.erase(at, id_length);
    log_.push_back(std::to_string(now_) + ' ' + std::move(line));
    if (log_.size() > log_lines) log_.pop_front();
}

std::string simulation::tail(std::size_t lines) const {
    std::string text;
    for (std::size_t i = log_.size() - std::min(lines, log_.size()); i < log_.size(); ++i) text += log_[i] + '\n';
    return text;
}

void simulation::settle() {
    do {
        io_.restart();
    } while (io_.poll() > 0);
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

bool simulation::step() {
    settle();
    on_idle();
    if (++now_ > most_steps) throw violation("it goes on for ever");
    const std::vector<sim_ensemble::step> steps = ensemble.steps();
    if (steps.empty()) on_quiet();
    if (!events_.empty() && (steps.empty() || events_.begin()->first <= now_)) {
        now_ = std::max(now_, events_.begin()->first);
        const auto event = events_.extract(events_.begin());
        event.mapped()();
        return true;
    }
    if (steps.empty()) return false;
    sim_ensemble::step chosen = steps[choose(steps)];
    ensemble.take(chosen);
    // Several answers may reach a client in one turn of its loop.
    if (chosen.what == sim_ensemble::step::kind::deliver)
        for (std::size_t more = pick(3); more > 0 && ensemble.answers_under_way(chosen.client) > 0; --more) ensemble.take(chosen);
    return true;
}

void simulation::run() {
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

void run_seed(const std::string& name, std::uint64_t seed, const std::function<void(simulation&)>& scenario) {
    simulation s(seed);
    std::string failed;
    try {
        scenario(s);
    } catch (const std::exception& e) {
        failed = e.what();
    }
    if (failed.empty()) return;
    FAIL(name << ": " << failed << "\nagain: ZKASIO_SIM_SEED=" << seed << "\n" << s.tail());
}

void run_few_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario) {
    if (const std::uint64_t only = number_in("ZKASIO_SIM_SEED", 0); only != 0) return run_seed(name, only, scenario);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) run_seed(name, seed, scenario);
    CHECK(seeds > 0);
}

void run_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario) {
    const std::uint64_t count = number_in("ZKASIO_SIM_SEEDS", seeds);
    const auto began = std::chrono::steady_clock::now();
    run_few_seeds(name, count, scenario);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (count != seeds) WARN(name << ": " << count << " seeds, " << static_cast<double>(count) / took.count() << " a second");
}

}  // namespace zkasio::test
