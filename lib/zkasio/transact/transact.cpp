#include <zkasio/transact/transact.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/local_turn.hpp>
#include <zkasio/recipe/pending.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/transact/detail/unit_record.hpp>

#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio {

using namespace transact_detail;

namespace {

using unit_ptr = std::shared_ptr<unit_state>;

unit_state& running_unit(const unit_ptr& state, const char* operation, const std::string& path) {
    if (!state) throw error(errc::invalid_argument, operation, path, "this unit was moved from");
    if (state->ended) throw error(errc::invalid_argument, operation, path, "the body of this unit has ended");
    return *state;
}

unit_record& record_for_write(const unit_ptr& state, const char* operation, const std::string& path) {
    unit_state& u = running_unit(state, operation, path);
    require_path(operation, path);
    return u.record;
}

// What a failed read tells the body: after no_node, that there is no node. Any other error is thrown; the end of the
// session is noted before.
seen_node missing_node(unit_state& u, const error& e) {
    if (e.code() == zk_errc::no_node) return std::nullopt;
    if (e.code() == errc::session_expired) u.session_over = e;
    throw error(e);
}

// The answer to a request that was sent ahead; nothing if there is none, or if its connection was lost.
asio::awaitable<std::optional<seen_node>> fetch_ahead(unit_ptr u, std::string path) {
    const auto sent = u->ahead.extract(path);
    if (sent.empty()) co_return std::nullopt;
    try {
        node_data found = co_await sent.mapped().result();
        co_return std::make_optional<seen_node>(std::move(found));
    } catch (const error& e) {
        if (e.code() != condition::retryable) co_return std::make_optional(missing_node(*u, e));
    }
    co_return std::nullopt;
}

asio::awaitable<seen_node> fetch(unit_ptr u, std::string path) {
    std::optional<seen_node> ahead = co_await fetch_ahead(u, path);
    if (ahead) co_return std::move(*ahead);
    try {
        seen_node found = co_await u->on.get(path);
        co_return found;
    } catch (const error& e) {
        co_return missing_node(*u, e);
    }
}

// Notes the parents of a missing node that are missing as well, as the servers have them: a parent that the body
// creates is missing before. A parent that exists is no condition.
asio::awaitable<void> note_missing_parents(unit_ptr u, std::string path) {
    for (std::string parent(parent_path(path)); parent.size() > 1; parent = std::string(parent_path(parent))) {
        if (u->record.has_read(parent)) co_return;
        seen_node found = co_await fetch(u, parent);
        running_unit(u, "get", path);
        if (found) co_return;
        u->record.note_missing(parent);
    }
}

asio::awaitable<seen_node> get_node(unit_ptr u, std::string path) {
    running_unit(u, "get", path);
    if (const seen_node* known = u->record.view(path)) co_return *known;
    seen_node found = co_await fetch(u, path);
    if (!found && u->with_parents->contains(path)) co_await note_missing_parents(u, path);
    running_unit(u, "get", path);
    co_return u->record.note_read(path, std::move(found));
}

asio::awaitable<std::vector<seen_node>> get_nodes(unit_ptr u, std::vector<std::string> paths) {
    running_unit(u, "get_all", {});
    u->read_ahead(paths);
    std::vector<seen_node> all;
    for (const std::string& path : paths) {
        seen_node found = co_await get_node(u, path);
        all.push_back(std::move(found));
    }
    co_return all;
}

}  // namespace

asio::awaitable<std::optional<node_data>> unit::get(std::string path) const {
    return get_node(state_, std::move(path));
}
asio::awaitable<std::vector<std::optional<node_data>>> unit::get_all(std::vector<std::string> paths) const {
    return get_nodes(state_, std::move(paths));
}

void unit::set(std::string path, bytes data) const {
    record_for_write(state_, "set", path).set(path, std::move(data).take());
}
void unit::create(std::string path, bytes data, create_options how) const {
    record_for_write(state_, "create", path).create(path, std::move(data).take(), std::move(how));
}
void unit::remove(std::string path) const { record_for_write(state_, "remove", path).remove(path); }

transact_options& transact_options::receipts(std::string directory) {
    require_path("transact", directory);
    receipts_ = std::move(directory);
    return *this;
}

transact_options& transact_options::under(const lock_guard& guard) {
    if (!guard.claim() || guard.reason() == loss_reason::released)
        throw error(errc::lock_released, "transact", guard.path());
    claim_ = guard.claim();
    return *this;
}

transact_options& transact_options::tries(int n) {
    if (n < 1) throw error(errc::invalid_argument, "transact", {}, "there is at least one try");
    tries_ = n;
    return *this;
}

transact_options& transact_options::promote_to(std::string lock_path) {
    require_path("transact", lock_path);
    promote_to_ = std::move(lock_path);
    return *this;
}

namespace transact_detail {
namespace {

using body_function = std::function<asio::awaitable<void>(unit&)>;

// How a run of the body, with its transaction, has ended.
struct run_end {
    enum class kind {
        done,
        conflict,      // nothing was written: again
        not_our_turn,  // others have or want the mutex of promote_to(): again, when this has it
        session_over,  // nothing was written: again in the next session
        failed,
    };
    kind what = kind::done;
    std::exception_ptr failed;  // null for kind::done
};

// The body of another transact() may wait for one that waits for its turn.
constexpr std::chrono::milliseconds longest_local_turn(5000);

// Where the conflict was.
std::string path_of(const run_end& end) {
    try {
        if (end.failed) std::rethrow_exception(end.failed);
    } catch (const error& e) {
        return e.path();
    }
    return {};
}

run_end failed_now(run_end::kind what) { return {what, std::current_exception()}; }

// The failure of the body itself, or of one of its reads because the session is over.
run_end body_failed(const unit_state& u) {
    try {
        throw;
    } catch (const error& e) {
        if (u.session_over && is_for_next_session(e)) return failed_now(run_end::kind::session_over);
        return failed_now(run_end::kind::failed);
    } catch (...) {
        return failed_now(run_end::kind::failed);
    }
}

// Applies the steps; again as long as they are certain not to have been applied, or change nothing.
asio::awaitable<void> apply_plainly(session on, transaction steps, bool writes) {
    back_off pauses = toolbox(on).make_back_off();
    for (;;) {
        try {
            co_await toolbox(on).multi_behind({}, steps, "transact");
            co_return;
        } catch (const error& e) {
            const bool unknown = writes && e.outcome_unknown();
            if (unknown || e.code() != condition::retryable)
                throw error(e.code(), e.operation(), e.path(), e.hint(), unknown);
        }
        co_await pauses.pause("transact", std::string());
    }
}

class transacting {
public:
    transacting(const body_function& body, client zk, transact_options how, commit_report& r)
        : report_(r),
          body_(body),
          zk_(std::move(zk)),
          how_(std::move(how)),
          claim_(how_.under() ? how_.under()->lock() : nullptr),
          orphans_(std::make_shared<orphans>()) {}

    asio::awaitable<void> run() {
        if (how_.under() && !claim_)
            throw error(errc::lock_released, "transact", {}, "the guard of under() was destroyed");
        if (claim_ && toolbox(claim_->on()).whole_path("/") != toolbox(zk_).whole_path("/"))
            throw error(errc::invalid_argument, "transact", {}, "the guard of under() is of another view");
        refuse_own_turn();
        session_pace pace = toolbox(zk_).make_session_pace();
        for (;;) {
            session on;
            if (claim_)
                on = claim_->on();
            else
                on = co_await toolbox(zk_).current_session("transact", std::string());
            const run_end end = co_await run_in(on.patient());
            if (end.what == run_end::kind::done) co_return;
            if (claim_ && end.what == run_end::kind::session_over) throw_lock_lost(end);
            if (end.what != run_end::kind::session_over) std::rethrow_exception(end.failed);
            turn_ = lock_guard();
            co_await pace.pause("transact", std::string());
        }
    }

private:
    asio::awaitable<run_end> run_in(session on) {
        std::optional<receipts> with;
        if (!how_.receipts().empty()) with.emplace(on, how_.receipts());
        back_off pauses = toolbox(on).make_back_off();
        std::optional<local_turn> local;  // of the node at which the last conflict was
        std::string node;
        for (;;) {
            run_end end = co_await run_once(on, with);
            bool enough = end.what == run_end::kind::not_our_turn;
            if (!enough) {
                if (end.what != run_end::kind::conflict) co_return end;
                enough = ++report_.conflicts >= tries();
                if (enough && how_.promote_to().empty()) co_return end;
            }
            try {
                const bool goes_on = has_turn();
                bool has_waited = false;
                if (enough || goes_on) {
                    local.reset();
                } else if (std::string now = path_of(end); !local || now != node) {
                    local.reset();  // who waits for a turn has no other one
                    node = std::move(now);
                    local.emplace(on, node, longest_local_turn);
                    has_waited = co_await local->come("transact", std::string());
                }
                if (enough && !goes_on)
                    co_await take_turn();
                else if (!goes_on && !has_waited)
                    co_await pauses.pause("transact", std::string());
                co_await on.sync();
                continue;
            } catch (const error& e) {  // nothing is uncertain: the transaction is not under way
                const bool is_over = e.code() == errc::session_expired;
                end.what = is_over ? run_end::kind::session_over : run_end::kind::failed;
                end.failed = std::make_exception_ptr(error(e.code(), "transact", e.path(), e.hint()));
            }
            co_return end;
        }
    }

    // The caller cannot release the lock of under() while transact() waits for the same lock.
    void refuse_own_turn() const {
        if (!claim_ || how_.promote_to().empty()) return;
        for (const std::string& path : claim_->paths())
            if (parent_path(path) == how_.promote_to())
                throw error(errc::would_deadlock, "transact", how_.promote_to(), "it is the lock of under()");
    }

    std::size_t tries() const noexcept {
        return static_cast<std::size_t>(
            how_.tries().value_or(how_.promote_to().empty() ? std::numeric_limits<int>::max() : 3));
    }

    // Not if an operator has removed the contender.
    bool has_turn() const noexcept { return turn_.reason() == loss_reason::none; }

    asio::awaitable<void> take_turn() {
        report_.promoted = true;
        const mutex queue(zk_, how_.promote_to());
        lock_guard guard = co_await errors_as("transact", std::string(), queue.acquire());
        turn_ = std::move(guard);
    }

    asio::awaitable<run_end> run_once(session on, std::optional<receipts> with) {
        if (claim_) require_held();
        const auto state = std::make_shared<unit_state>(on, orphans_);
        std::optional<pending_data> queue;
        if (!how_.promote_to().empty() && !has_turn()) queue.emplace(toolbox(on).start_exists(how_.promote_to()));
        state->read_ahead(read_before_);
        run_end end;
        try {
            unit u(state);
            co_await body_(u);
        } catch (...) {
            end = body_failed(*state);
        }
        state->ended = true;
        read_before_ = state->record.read_paths();
        if (end.what == run_end::kind::done && state->session_over) {  // the body has gone on without an answer
            end.what = run_end::kind::session_over;
            end.failed = std::make_exception_ptr(*state->session_over);
        }
        if (end.what != run_end::kind::done) co_return end;
        if (queue && state->record.has_writes()) {
            // Others have or want the mutex of promote_to(): all writers wait in its queue.
            const std::string& path = how_.promote_to();
            auto looking = has_contenders(operations(on), path, name_scheme::curator().mutex_marker(), *queue);
            try {
                const bool queued = co_await errors_as("transact", std::string(), std::move(looking));
                if (queued) end.what = run_end::kind::not_our_turn;
            } catch (const error& e) {  // nothing is uncertain: the transaction is not under way
                end = failed_now(is_for_next_session(e) ? run_end::kind::session_over : run_end::kind::failed);
            }
        }
        if (end.what != run_end::kind::done) co_return end;
        std::optional<error> refused;
        try {
            co_await commit(*state, std::move(with));
        } catch (const error& e) {
            end = failed_now(meaning_of(*state, e));
            refused.emplace(e);
        }
        if (end.what == run_end::kind::failed && is_refusal(*refused)) {
            std::map<std::string, seen_node> read = state->record.conditions_among_writes();
            end.what = co_await meaning_of_refusal(on, std::move(read));
        }
        const std::optional<error>& contradiction = state->record.contradiction();
        if (end.what == run_end::kind::done && contradiction) {
            end.what = run_end::kind::failed;
            end.failed = std::make_exception_ptr(*contradiction);
        }
        co_return end;
    }

    asio::awaitable<void> commit(const unit_state& u, std::optional<receipts> with) {
        const bool writes = u.record.has_writes();
        transaction steps;
        if (claim_) {
            require_held();
            for (const std::string& path : claim_->paths()) steps.check(path);
        }
        steps.append(u.record.steps());
        if (steps.empty()) co_return;
        try {
            if (writes && with)
                co_await with->apply(std::move(steps), "transact");
            else
                co_await apply_plainly(u.on, std::move(steps), writes);
        } catch (const error& e) {
            if (claim_) lock_detail::throw_if_lost(claim_, e, "transact");
            if (e.code() == errc::invalid_argument) throw;  // names the step of the body
            rethrow_as("transact", std::string_view());
        }
    }

    run_end::kind meaning_of(const unit_state& u, const error& e) const {
        if (e.outcome_unknown()) return run_end::kind::failed;
        if (is_for_next_session(e)) return run_end::kind::session_over;
        switch (u.record.meaning_of(e)) {
            case unit_record::refusal::no_parent: orphans_->insert(e.path()); return run_end::kind::conflict;
            case unit_record::refusal::conflict: return run_end::kind::conflict;
            case unit_record::refusal::of_a_write: break;
        }
        // Not even the root of the view is there: so nothing is.
        const bool no_root = toolbox(u.on).whole_path("/") != "/" && e.code() == zk_errc::no_node &&
                             parent_path(e.path()) == "/" && u.record.has_read(e.path());
        if (no_root && !u.record.saw_nothing()) return run_end::kind::conflict;
        return no_root && !u.record.has_writes() ? run_end::kind::done : run_end::kind::failed;
    }

    // The servers have refused a write, as impossible in the state that they have.
    static bool is_refusal(const error& e) {
        return !e.outcome_unknown() && (e.code() == zk_errc::node_exists || e.code() == zk_errc::no_node ||
                                        e.code() == zk_errc::not_empty || e.code() == zk_errc::no_auth ||
                                        e.code() == zk_errc::no_children_for_ephemerals);
    }

    // Looks at the conditions that may stand behind the refused write: a node that has changed since is a conflict.
    // (A node that is as it was read was so, too, when the write was refused.)
    static asio::awaitable<run_end::kind> meaning_of_refusal(session on, std::map<std::string, seen_node> read) {
        if (read.empty()) co_return run_end::kind::failed;
        try {
            co_await on.sync();
            std::vector<std::pair<seen_node, pending_data>> asked;
            for (auto& [path, node] : read) asked.emplace_back(std::move(node), toolbox(on).start_exists(path));
            for (const auto& [before, request] : asked) {
                const seen_node now = co_await if_exists(request.result());
                if (!unit_record::is_unchanged(before, now)) co_return run_end::kind::conflict;
            }
        } catch (const error& e) {
            if (e.code() == errc::session_expired) co_return run_end::kind::session_over;
            if (e.code() == condition::retryable) co_return run_end::kind::conflict;  // not known: again
            if (e.code() == condition::cancelled) throw;
        }
        co_return run_end::kind::failed;
    }

    void require_held() const { lock_detail::require_held(claim_, false, "transact"); }

    [[noreturn]] void throw_lock_lost(const run_end& end) const {
        try {
            std::rethrow_exception(end.failed);
        } catch (const error& e) {
            lock_detail::throw_if_lost(claim_, e, "transact");
            throw;
        }
    }

    commit_report& report_;
    const body_function& body_;
    const client zk_;
    const transact_options how_;
    const std::shared_ptr<lock_claim> claim_;
    const std::shared_ptr<orphans> orphans_;
    std::vector<std::string> read_before_;  // by the last run of the body
    lock_guard turn_;                       // the mutex of promote_to()
};

}  // namespace

asio::awaitable<void> run_transact(body_function body, client zk, transact_options how) {
    if (!body) throw error(errc::invalid_argument, "transact", {}, "the body is empty");
    commit_report r = begin_commit(commit_kind::transact);
    transacting t(body, zk, std::move(how), r);
    co_await reported_commit(t.run(), zk, std::string(), r);
}

}  // namespace transact_detail
}  // namespace zkasio
