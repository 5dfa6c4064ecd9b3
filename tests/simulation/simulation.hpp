#pragma once

#include "simulation/scheduler.hpp"
#include "simulation/sim_names.hpp"

#include "support/late_executor.hpp"

#include <zkasio/client.hpp>
#include <zkasio/client_options.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace zkasio::test {

/// A property that must hold does not.
class violation : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

/// Clients on one event loop, an ensemble in memory, and a scheduler: whenever the loop has nothing to do, a number
/// from the seed decides what happens next. The same seed, the same run.
class simulation {
public:
    enum class logging {
        off,
        on,
    };
    explicit simulation(std::uint64_t seed, logging log = logging::off);
    /// Between explore(true) and explore(false), `by` decides what happens next. Nothing is at random.
    explicit simulation(scheduler& by, logging log = logging::off);
    ~simulation();
    static constexpr int everybody = -1, nobody = -2;
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;

    // ---------------------------------------------------------------------------------------------- for the scenario
    std::size_t pick(std::size_t below);  ///< [0, below); 0 under a scheduler
    bool chance(int percent) {  ///< false under a scheduler
        return !scheduler_ && pick(100) < static_cast<std::size_t>(percent);
    }
    asio::any_io_executor executor() { return io_.get_executor(); }
    /// Number 0, 1, ...
    client add_client(suspension_policy when_suspended = suspension_policy::keep);
    client client_number(int n) const { return clients_[static_cast<std::size_t>(n)]; }
    detail::core& inside(int n) const { return *cores_[static_cast<std::size_t>(n)]; }
    int clients() const noexcept { return static_cast<int>(cores_.size()); }
    /// Of bodies: see lock_guard::run().
    std::chrono::milliseconds most_stop_margin() const {
        return ensemble.session_timeout / 2 - ensemble.session_timeout / static_cast<int>(renewal_);
    }

    /// From now on half of the seeds have users whose executors are late: while a handler waits there, clients and
    /// servers go on for a number of steps that is drawn from the seed. Under a scheduler all users have, and the turns
    /// of each are steps of their own.
    void let_users_be_late();
    void let_users_be_punctual() noexcept { users_are_late_ = false; }
    /// The servers are of a version that is drawn from the seed. One before 3.6 answers what it does not know, and does
    /// not hang up: where no time passes, a client that waits before it connects again waits for ever.
    void draw_version_of_servers();
    bool users_may_be_late() const noexcept { return users_are_late_; }
    /// For a coroutine of a user: executor(), one of its own, or one that others use, too.
    asio::any_io_executor user_executor(int client = everybody);

    /// An exception of it ends run().
    void spawn(asio::awaitable<void> task) { spawn(executor(), std::move(task)); }
    void spawn(asio::any_io_executor on, asio::awaitable<void> task);
    /// `what` happens when this many steps have been taken, or when there is nothing else to do; under a scheduler, at
    /// any time, without a delay. @param client the only one for which it matters when.
    void after(std::size_t steps, std::function<void()> what, int client = everybody);
    /// Under a scheduler, its end is a step as any other.
    asio::awaitable<void> pause(std::size_t steps, int client = everybody);
    void explore(bool on) noexcept { exploring_ = on; }
    /// Under a scheduler: that all answers reach a client in one turn of its loop is a step of its own.
    void let_answers_come_together() noexcept { answers_together_ = true; }
    /// Under a scheduler: no client lists this directory, so the order of its nodes does not matter.
    void is_never_listed(std::string directory) { never_listed_.insert(std::move(directory)); }
    /// Under a scheduler: what this step does has to do with what users of different clients do.
    void seen_by_all() noexcept { seen_.seen_by_all = true; }
    /// Under a scheduler: what a user is told in this step is compared with this node and its children, and with what
    /// others are told of them.
    void seen_at(const std::string& path);
    /// Under a scheduler: see scheduler::rest_in_any_order().
    void rest_in_any_order() {
        if (exploring_) scheduler_->rest_in_any_order();
    }
    /// Under a scheduler: a step after which this number differs is seen_by_all().
    std::function<std::size_t()> losses = [] { return std::size_t{0}; };
    std::uint64_t now() const noexcept { return now_; }
    /// The names of a node's children; none if it does not exist.
    std::vector<std::string> children(const std::string& directory) const;
    /// An operator deletes one of a node's children, if there is any.
    void delete_child_of(const std::string& directory);
    /// A line for the log, if there is one.
    template <class... Parts>
    void note(const Parts&... parts) {
        if (log_wanted_ == logging::on) write_down((std::string() += ... += parts));
    }
    /// The newest lines of the log.
    std::string tail(std::size_t newest = 250) const;

    std::function<void()> on_idle = [] {};   ///< between two steps
    std::function<void()> on_quiet = [] {};  ///< the ensemble has nothing left to do
    /// Chooses among the ensemble's steps; at random by default.
    std::function<std::size_t(const std::vector<sim_ensemble::step>&)> choose;

    /// Everything that the clients do without the servers.
    void settle();
    /// Until nothing can happen any more.
    void run();
    /// One step. False when nothing can happen any more.
    bool step();
    /// Closes the clients, and checks that nothing is left of them anywhere.
    void close();

    sim_ensemble ensemble;

private:
    // A thread of a user's program that has other work, too.
    struct user {
        std::shared_ptr<late_handlers> handlers = std::make_shared<late_handlers>();
        std::size_t percent = 0, longest = 1;  // so many of its turns are late, by so many steps at most
        bool will_run = false;
        int client = everybody;
    };
    std::size_t draw(std::size_t below) { return static_cast<std::size_t>(lateness_() % below); }
    void run_later(user& u);
    void run_now(user& u);
    void run_one(user& u);
    void nothing_pending();
    simulation(std::uint64_t seed, logging log, scheduler* by);
    bool step_as_told();
    void add_event(int client, std::function<void()> what, bool any_time = false);
    void seed_ids(int client);
    void write_down(std::string line);

    const logging log_wanted_;
    const lease_renewal renewal_;  // by the seed
    std::mt19937_64 random_, lateness_;  // apart: whether users are late changes nothing else that is drawn
    std::vector<sim_ensemble::step> possible_;
    bool clients_run_ = true;  // or something that may let them; what the servers do among themselves does not
    asio::io_context io_;
    std::vector<std::shared_ptr<detail::core>> cores_;
    std::vector<client> clients_;
    std::multimap<std::uint64_t, std::function<void()>> events_;
    std::deque<user> users_;  // that are late
    bool users_are_late_ = false;
    std::size_t late_ = 0;  // users who will run
    std::uint64_t now_ = 0;
    std::deque<std::string> log_;
    std::exception_ptr failed_;

    // Under a scheduler:
    struct event {
        int client, number;
        int cause;  // the step in which it became possible; -1: before the first
        bool any_time;
        std::function<void()> what;
    };
    // What is under way between a client and its server, each with the step that has put it there.
    struct lines {
        std::deque<int> requests, answers;
        int touched = -1;  // the last step that had to do with the client
    };
    struct surroundings {
        std::size_t requests, answers;
        bool connected;
    };
    surroundings around(int client) const;
    footprint footprint_of(int step, const std::string& request, const std::vector<surroundings>& before,
                           std::size_t transactions);
    scheduler* const scheduler_;
    bool exploring_ = false, taking_ = false, answers_together_ = false;
    int told_steps_ = 0;
    std::vector<event> possible_events_;
    std::map<int, int> events_of_;  // how many there were, by client
    std::map<int, std::uint64_t> turns_of_;
    std::set<std::string> never_listed_;
    footprint seen_;                // of the current step: what users are told
    std::vector<lines> lines_;      // by client
};

/// Runs `scenario(simulation)` with this seed. When it fails, runs it once more to have a log, and says with which
/// command one sees it again.
void run_seed(const std::string& name, std::uint64_t seed, const std::function<void(simulation&)>& scenario);

/// With so many seeds from $ZKASIO_SIM_FIRST_SEED (1) on, or only with $ZKASIO_SIM_SEED.
void run_few_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario);

/// The same with many seeds: $ZKASIO_SIM_SEEDS of them, or `seeds`. Says how fast it was when asked for another number.
void run_seeds(const std::string& name, std::uint64_t seeds, const std::function<void(simulation&)>& scenario);

}  // namespace zkasio::test
