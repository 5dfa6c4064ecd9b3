#include <zkasio/election/leader_election.hpp>

#include <zkasio/election/detail/candidacy.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace zkasio {
namespace {

using claim_ptr = std::shared_ptr<lock_claim>;

// Nothing: the directory has gone or the session has ended. In both cases the leader's node has gone, too.
asio::awaitable<std::optional<node_data>> read_directory(session on, std::string directory) {
    try {
        co_return co_await on.get(directory);
    } catch (const error& e) {
        if (e.code() != zk_errc::no_node && e.code() != errc::session_expired) throw;
    }
    co_return std::nullopt;
}

// Writes `data` into the directory's note: what a former leader has proclaimed is replaced, the other entries stay.
transaction proclaimed_in(const std::string& directory, const node_data& now, std::string_view leader,
                          const std::string& data) {
    directory_note note = directory_note::parse_to_write(now.data, "proclaim", directory);
    note.leader = leader;
    note.proclaimed = data;
    transaction steps;
    steps.set(directory, note.text(), now.stat.version);
    return steps;
}

// False: another client has written to the directory since it was read.
asio::awaitable<bool> commit_version(claim_ptr claim, transaction steps, std::string directory) {
    try {
        co_await lock_detail::commit_under(claim, false, std::move(steps), "proclaim");
    } catch (const error& e) {
        if (e.code() != zk_errc::bad_version || e.path() != directory) throw;
        co_return false;
    }
    co_return true;
}

asio::awaitable<void> proclaimed(claim_ptr claim, bool resigned, std::string data) {
    const bool leads = !resigned && claim->hold().held();
    // commit_under() throws the reason, unless a heartbeat has just been answered.
    if (!leads) co_await lock_detail::commit_under(claim, resigned, transaction(), "proclaim");
    const std::string node = claim->paths().front(), directory(parent_path(node));
    back_off pauses = toolbox(claim->on()).make_back_off();
    for (bool written = false; !written;) {
        const std::optional<node_data> now = co_await read_directory(claim->on(), directory);
        transaction steps;
        if (now)
            steps = proclaimed_in(directory, *now, node_name(node), data);
        else
            steps.check(directory);
        written = co_await commit_version(claim, std::move(steps), directory);
        if (!written) co_await pauses.pause();
    }
}

}  // namespace

asio::awaitable<void> leadership::proclaim(bytes data) const {
    const bool resigned = guard_.reason() == loss_reason::released;
    return errors_as("proclaim", guard_.path(), proclaimed(guard_.claim(), resigned, std::move(data).take()));
}

lead_options& lead_options::minimum_tenure(any_duration t) {
    const std::chrono::nanoseconds tenure = t;
    if (tenure < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "lead", {}, "a minimum tenure is not negative");
    minimum_tenure_ = tenure;
    return *this;
}

namespace {

std::string checked(std::string path) {
    require_directory("leader_election", path);
    return path;
}

mutex queue_of(const client& zk, std::string path, const leader_election_options& options) {
    return {zk, checked(std::move(path)), mutex_options().data(options.id()).acl(options.acl()).names(options.names())};
}

// The coroutines that the members return keep what they need: the election may be destroyed before they are awaited.

acquire_options as_candidate(acquire_options how, const mutex& queue) {
    if (how.owner())
        throw error(errc::invalid_argument, "campaign", queue.path(),
                    "a term has one end: an election knows no lock_owner");
    return std::move(how.survive_expiry());
}

// The leader's node is watched from the grant on: terms are few and long. (The node of a lock is watched when it has
// been held for a quarter of the session timeout.)
leadership as_leadership(lock_guard guard) {
    const std::shared_ptr<lock_claim>& claim = guard.claim();
    asio::dispatch(claim->on().get_executor(), [claim] { claim->hold().watch_nodes(); });
    return leadership(std::move(guard));
}

std::optional<leadership> as_leadership(std::optional<lock_guard> guard) {
    std::optional<leadership> leader;
    if (guard) leader.emplace(as_leadership(std::move(*guard)));
    return leader;
}

// Errors of the lock are reported as errors of the campaign. To be called in a catch block.
[[noreturn]] void rethrow_as_campaign(std::string_view operation, const std::string& path) {
    try {
        throw;
    } catch (const error& e) {
        if (e.code() == errc::would_deadlock)
            throw error(e.code(), operation, path,
                        "the work under a leadership stands in the same election again: it leads already");
        rethrow_as(operation, path);
    }
}

asio::awaitable<leadership> elected(mutex queue, acquire_options how, std::string operation) {
    try {
        lock_guard guard = co_await queue.acquire(as_candidate(std::move(how), queue));
        co_return as_leadership(std::move(guard));
    } catch (const error&) {
        rethrow_as_campaign(operation, queue.path());
    }
}

using timed_attempt = std::function<asio::awaitable<std::optional<lock_guard>>(const mutex&, acquire_options)>;

asio::awaitable<std::optional<leadership>> elected_in_time(mutex queue, acquire_options how, std::string operation,
                                                           timed_attempt attempt) {
    try {
        std::optional<lock_guard> guard = co_await attempt(queue, as_candidate(std::move(how), queue));
        co_return as_leadership(std::move(guard));
    } catch (const error&) {
        rethrow_as_campaign(operation, queue.path());
    }
}

}  // namespace

leader_election::leader_election(client zk, std::string path, leader_election_options options)
    : zk_(std::move(zk)), names_(options.names()), queue_(queue_of(zk_, std::move(path), options)) {}

asio::awaitable<leadership> leader_election::campaign(acquire_options how) const {
    return elected(queue_, std::move(how), "campaign");
}

asio::awaitable<std::optional<leadership>> leader_election::try_campaign(acquire_options how) const {
    return elected_in_time(queue_, std::move(how), "try_campaign",
                           [](const mutex& queue, acquire_options o) { return queue.try_acquire(std::move(o)); });
}

asio::awaitable<std::optional<leadership>> leader_election::try_campaign_for(any_duration limit,
                                                                             acquire_options how) const {
    return elected_in_time(queue_, std::move(how), "try_campaign_for", [limit](const mutex& queue, acquire_options o) {
        return queue.try_acquire_for(limit, std::move(o));
    });
}

asio::awaitable<std::optional<leadership>> leader_election::try_campaign_until(boot_clock::time_point limit,
                                                                               acquire_options how) const {
    const auto attempt = [limit](const mutex& queue, acquire_options o) {
        return queue.try_acquire_until(limit, std::move(o));
    };
    return elected_in_time(queue_, std::move(how), "try_campaign_until", attempt);
}

leader_observer leader_election::observe() const {
    if (path().empty()) throw error(errc::invalid_argument, "observe", {}, "this election was moved from");
    return {zk_, path(), names_};
}

asio::awaitable<std::vector<contender_info>> leader_election::candidates() const {
    return errors_as("candidates", path(), queue_.contenders());
}

// ------------------------------------------------------------------------------------------------------------ lead

namespace election_detail {
namespace {

asio::awaitable<void> wait_until(boot_clock::time_point end) {
    using namespace std::chrono_literals;
    const auto left = std::min<boot_clock::duration>(end - boot_clock::now(), 24h * 365 * 100);
    asio::steady_timer timer(co_await asio::this_coro::executor, std::max<boot_clock::duration>(left, 0ns));
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<leadership> stand(client zk, mutex queue) {
    auto campaign = [&] { return elected(queue, acquire_options(), "lead"); };
    try {
        co_return co_await retry_until_certain(toolbox(zk).make_back_off(), campaign);
    } catch (const error&) {
        throw;
    } catch (...) {  // a pause was cancelled
        rethrow_as("lead", queue.path());
    }
}

void warn_of(const std::exception_ptr& failure, const client& zk, const std::string& path) {
    std::string why;
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& e) {
        why = e.what();
    } catch (...) {
    }
    log_warning(zk, path + ": a term as leader has ended, and another one follows: " + why, {{"path", path}});
}

// One term: from the election to the end of the body and of the minimum tenure.
asio::awaitable<term_end> serve(leadership& leader, const lead_body& body, lead_options how) {
    const boot_clock::time_point earliest_end = boot_clock::after(how.minimum_tenure());
    bool body_has_returned = false;
    term_end end;
    std::function<asio::awaitable<void>()> term = [&]() -> asio::awaitable<void> {
        co_await body(leader);
        body_has_returned = true;
        end.completed = leader.held();
        if (leader.held() && boot_clock::now() < earliest_end) co_await wait_until(earliest_end);
    };
    try {
        co_await lock_detail::run_under(leader.guard().claim(), false, std::move(term), how.stop_margin(), "lead");
    } catch (...) {
        end.failure = std::current_exception();
    }
    end.outcome_unknown = leaves_outcome_unknown(end.failure);
    end.held = leader.held();
    // A body that is cancelled because of the loss may resign, too: such a term was lost, not resigned.
    end.resigned = leader.reason() == loss_reason::released && !tells_of_loss(end.failure, leader.path());
    if (body_has_returned) end.failure = nullptr;  // the cancellation has ended the minimum tenure, not the body
    if (end.failure && end.lost()) end.failure = failure_in_loss(end.failure);
    co_return end;
}

// Gives the leadership up before lead() stands again.
asio::awaitable<void> resign(leadership& leader, std::string path) {
    return errors_as("lead", std::move(path), leader.resign());
}

// @param untold whether the body that ran last has left the outcome of a write unknown, and the caller was not told.
asio::awaitable<void> lead_in_terms(const lead_body& body, client zk, mutex queue, lead_options how, bool& untold) {
    back_off pauses = toolbox(zk).make_back_off();
    session_pace pace = toolbox(zk).make_session_pace();
    for (;;) {
        leadership leader = co_await stand(zk, queue);
        untold = false;
        const boot_clock::time_point began = boot_clock::now();
        const term_end end = co_await serve(leader, body, how);
        const after_term next = decide(end, how);
        if (next == after_term::fail) std::rethrow_exception(end.failure);
        untold = end.outcome_unknown;
        try {
            co_await resign(leader, queue.path());
        } catch (const std::system_error&) {
            // The body's value is worth more than the news of a cancellation, or of a closed client: the resignation
            // goes on, or the node goes with its session.
            if (next != after_term::complete) throw;
        }
        if (next == after_term::complete) co_return;
        // A body that has worked for longer than a session timeout has not failed again and again.
        if (boot_clock::now() - began > leader.guard().claim()->on().timeout()) pauses.reset();
        if (next == after_term::pause_and_stand_again) {
            warn_of(end.failure, zk, queue.path());
            co_await pauses.pause("lead", queue.path());
        }
        if (leader.guard().claim()->on().over()) co_await pace.pause("lead", queue.path());
    }
}

}  // namespace

asio::awaitable<void> lead(lead_body body, client zk, mutex queue, lead_options how) {
    if (!body) throw error(errc::invalid_argument, "lead", queue.path(), "the body is empty");
    bool untold = false;
    try {
        co_await lead_in_terms(body, zk, queue, how, untold);
    } catch (const std::system_error&) {
        if (!untold) throw;
        rethrow_with_write_of_body("lead", queue.path());
    }
}

}  // namespace election_detail
}  // namespace zkasio
