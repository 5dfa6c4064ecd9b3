#include "worker.hpp"

#include <zkasio/error.hpp>
#include <zkasio/transaction.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace soak {

using namespace std::chrono_literals;

round::round(worker& w, std::string lock, std::string kind)
    : w_(w), lock_(std::move(lock)), kind_(std::move(kind)), operation_(w.log.next_operation()) {
    note("want", lock_ + " " + kind_);
}

round::~round() { w_.held.erase(operation_); }

void round::note(const std::string& verb, const std::string& rest) {
    w_.log.note(verb + " " + std::to_string(operation_) + (rest.empty() ? "" : " " + rest));
}

void round::failed() { note("failed", std::current_exception() ? outcome_of_failure() : "no timeout"); }

void round::granted(const zkasio::lock_guard& guard) {
    std::string paths;
    for (const std::string& p : guard.paths()) paths += (paths.empty() ? "" : ",") + p;
    std::string tokens;  // of several locks, each has its own
    if (lock_.find(',') != lock_.npos)
        for (const zkasio::fencing_token& t : guard.tokens())
            tokens += (tokens.empty() ? " " : ",") + std::to_string(t.value()) + '.' + std::to_string(t.turn());
    const auto now = zkasio::boot_clock::now();  // first, as in watch_leases()
    const auto until = guard.held() ? guard.held_until() : zkasio::boot_clock::time_point();
    w_.log.note(now, "got " + std::to_string(operation_) + " " + std::to_string(guard.token().value()) + " " +
                         std::to_string(guard.token().turn()) + " " +
                         std::to_string(until.time_since_epoch().count()) + " " + paths + tokens);
    w_.held[operation_] = &guard;
}

awaitable<void> round::commit(const zkasio::lock_guard& guard) {
    const std::uint64_t n = w_.log.next_operation();
    w_.log.note("commit " + std::to_string(n) + " " + std::to_string(operation_));
    zkasio::transaction mine;
    mine.set(root + "/records/" + std::string(lock_.begin(), std::find(lock_.begin(), lock_.end(), ',')),
             std::to_string(guard.token().value()));
    std::string outcome;
    try {
        const std::vector<zkasio::step_result> applied = co_await guard.commit(mine);
        const zkasio::node_stat& stat = *applied.back().new_stat;
        outcome = "yes " + std::to_string(stat.mzxid) + " " + std::to_string(stat.version);
    } catch (const std::exception&) {
        outcome = outcome_of_failure();
    }
    w_.log.note("end " + std::to_string(n) + " " + outcome);
}

awaitable<void> round::hold(const zkasio::lock_guard& guard, std::chrono::milliseconds mean) {
    // Some hold for longer than a lease: faults meet them.
    const auto time = w_.one_in(50) ? std::min(w_.about(3s), std::chrono::milliseconds(10s)) : w_.about(mean);
    const auto end = zkasio::boot_clock::now() + time;
    const bool commits = kind_ == "x" && lock_ != "unfair" && w_.one_in(3);
    if (commits) co_await commit(guard);
    while (guard.held() && zkasio::boot_clock::now() < end && !w_.stopping) {
        const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - zkasio::boot_clock::now());
        co_await w_.pause(std::min(rest, 50ms));
    }
    if (commits && time > 50ms) co_await commit(guard);
}

void round::has_margin(std::chrono::nanoseconds margin) { note("margin", std::to_string(margin.count())); }

void round::holds_no_longer(const std::string& verb) {
    const auto now = zkasio::boot_clock::now();  // first: what is held afterwards was held at this time
    const auto mine = w_.held.find(operation_);
    const bool held = mine != w_.held.end() && mine->second->held();
    w_.log.note(now, verb + " " + std::to_string(operation_) + (held ? " held" : " lost"));
    w_.held.erase(operation_);
}

void round::releasing() { holds_no_longer("let"); }

void round::released() { note("free"); }

void round::cancelled() { holds_no_longer("cancelled"); }

void round::becomes_reader(const zkasio::lock_guard* guard) {
    if (guard == nullptr) {
        releasing();
        operation_ = w_.log.next_operation();
        note("want", lock_ + " r");
    } else {
        granted(*guard);
    }
}

awaitable<void> watch_leases(worker& w) {
    std::map<std::uint64_t, zkasio::boot_clock::time_point> known;
    while (!w.stopping || !w.held.empty()) {
        const auto now = zkasio::boot_clock::now();  // first: whatever is held afterwards was held at this time
        std::erase_if(known, [&](const auto& k) { return !w.held.contains(k.first); });
        for (const auto& [operation, guard] : w.held) {
            if (known[operation] == zkasio::boot_clock::time_point::max()) continue;  // lost
            const auto until = guard->held_until();
            if (!guard->held()) {
                w.log.note(now, "lost " + std::to_string(operation) + " " +
                                    std::to_string(static_cast<int>(guard->reason())));
                known[operation] = zkasio::boot_clock::time_point::max();
            } else if (until != known[operation]) {
                w.log.note(now, "lease " + std::to_string(operation) + " " +
                                    std::to_string(until.time_since_epoch().count()));
                known[operation] = until;
            }
        }
        co_await w.pause(100ms);
    }
}

}  // namespace soak
