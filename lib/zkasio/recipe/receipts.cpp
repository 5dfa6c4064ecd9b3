#include <zkasio/recipe/receipts.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/detail/receipt_pool.hpp>
#include <zkasio/recipe/detail/receipt_rules.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>

#include <optional>
#include <utility>

namespace zkasio {

using namespace detail;

struct receipts::state {
    state(session s, std::string d, acl e, missing_parents p)
        : on(std::move(s)),
          directory(std::move(d)),
          entries(std::move(e)),
          when_missing(p),
          found(toolbox(on).make_one_shot_event()) {}

    const session on;
    const std::string directory;
    const acl entries;
    const missing_parents when_missing;
    const one_shot_event found;
    std::shared_ptr<receipt_pool> pool;  // written before `found` is fired
};

namespace {

// The receipt of one transaction. The destructor gives the receipt back, to serve another transaction, unless this
// transaction may still be applied, or the receipt's node is gone (R3).
class receipt_in_use {
public:
    receipt_in_use(std::shared_ptr<receipt_pool> from, std::string directory, acl entries, missing_parents when_missing)
        : from_(std::move(from)),
          directory_(std::move(directory)),
          entries_(std::move(entries)),
          when_missing_(when_missing),
          turn_(from_) {}
    receipt_in_use(const receipt_in_use&) = delete;
    receipt_in_use& operator=(const receipt_in_use&) = delete;
    ~receipt_in_use() {
        if (receipt_.path.empty()) return;
        if (certain_ && can_serve_again(receipt_.version))
            turn_.leave(std::move(receipt_));
        else
            from_->remove(receipt_);
    }

    /// Waits until one of the receipts is free. To be called first.
    asio::awaitable<void> taken(std::string operation) {
        co_await turn_.come(std::move(operation), directory_);
        take_found();
    }

    const receipt& operator*() const noexcept { return receipt_; }
    const receipt* operator->() const noexcept { return &receipt_; }

    /// Creates the node, if the receipt is a new one. *Completes when* the node exists. (Its name is new, so a node of
    /// that name is this one.) The error of a failure is without outcome_unknown(): the transaction was not sent.
    /// While client_options::ephemeral_budget() has no room for it, the receipts of other transactions are waited for.
    asio::awaitable<void> made(session on, std::string operation) {
        create_options how;
        how.mode(create_mode::ephemeral).acl(entries_).parents(when_missing_);
        while (receipt_.version < 0) {
            std::optional<error> no_room;
            try {
                co_await ensure_created(on, receipt_.path, bytes(), how);
            } catch (const error& e) {
                no_room.emplace(e.code(), e.operation(), e.path(), e.hint());
                if (e.code() != errc::too_many_ephemerals || e.outcome_unknown()) throw error(*no_room);
            }
            certain_ = true;
            if (!no_room) {
                receipt_.version = 0;
                co_return;
            }
            receipt_.path.clear();
            const bool found = co_await turn_.come_again(operation, directory_);
            if (!found) throw error(*no_room);
            take_found();
        }
    }
    /// For a receipt whose node an operator has taken away.
    void replace() {
        from_->remove(receipt_);
        begin_another();
    }
    void transaction_is_under_way() noexcept { certain_ = false; }
    void was_applied() noexcept {
        ++receipt_.version;
        certain_ = true;
    }
    void was_refused() noexcept { certain_ = true; }

private:
    void take_found() {
        if (std::optional<receipt> found = turn_.take_found())
            receipt_ = std::move(*found);
        else
            begin_another();
    }
    void begin_another() {
        receipt_.path = join_path(directory_, "_r-" + new_protection_id());
        receipt_.version = -1;
        certain_ = false;
    }

    const std::shared_ptr<receipt_pool> from_;
    const std::string directory_;
    const acl entries_;
    const missing_parents when_missing_;
    receipt_pool::turn turn_;
    receipt receipt_;
    bool certain_ = true;
};

std::vector<step_result> known_results(const transaction& steps) {
    std::vector<step_result> results;
    for (const transaction::step& s : steps.steps()) {
        step_result& r = results.emplace_back();
        if (s.what == transaction::kind::create && !is_sequential(s.options.mode())) r.path = s.path;
    }
    return results;
}

void stamp(committed& c, const node_stat& of) {
    c.zxid = of.mzxid;
    c.at = std::chrono::system_clock::time_point(std::chrono::milliseconds(of.mtime));
}

asio::awaitable<receipt_says> find_out(session on, const receipt& r, committed& done) {
    co_await on.sync(r.path);
    const std::optional<node_data> now = co_await if_exists(on.get(r.path));
    const receipt_says answer = read_receipt(now, r.version, r.next_data());
    if (answer == receipt_says::applied) stamp(done, now->stat);
    co_return answer;
}

}  // namespace

receipts::receipts(session on, std::string directory, acl entries, missing_parents when_missing) {
    require_path("receipts", directory);
    state_ = std::make_shared<state>(std::move(on), std::move(directory), std::move(entries), when_missing);
    asio::dispatch(state_->on.get_executor(), [s = state_] {
        // A directory that the receipts do not create belongs to another user, who may want to remove it.
        const bool kept = s->when_missing != missing_parents::fail;
        s->pool = receipt_pool::of(s->on, s->directory, s->entries, kept);
        s->found.fire();
    });
}

asio::awaitable<committed> receipts::apply(transaction steps, std::string operation) const {
    return applied(state_, std::move(steps), std::move(operation));
}

asio::awaitable<committed> receipts::applied(std::shared_ptr<state> s, transaction steps, std::string operation) {
    if (!s) throw error(errc::invalid_argument, operation, {}, "these receipts were moved from");
    co_await errors_as(operation, s->directory, s->found.wait());
    const session on = s->on.patient();
    receipt_in_use receipt(s->pool, s->directory, s->entries, s->when_missing);
    co_await receipt.taken(operation);
    back_off pauses = toolbox(on).make_back_off();
    committed done;
    bool maybe_applied = false;
    try {
        for (;; co_await pauses.pause()) {
            co_await receipt.made(on, operation);
            transaction all = steps;
            all.set(receipt->path, bytes(receipt->next_data()), receipt->version);
            std::optional<error> failed;
            receipt.transaction_is_under_way();
            try {
                done.results = co_await toolbox(on).multi_behind({}, std::move(all), operation);
            } catch (const error& e) {
                failed.emplace(e);
            }
            if (!failed) {
                stamp(done, *done.results.back().new_stat);
                done.results.pop_back();
                receipt.was_applied();
                co_return done;
            }
            maybe_applied = maybe_applied || failed->outcome_unknown();
            after_failure next = next_after(*failed, receipt->path, maybe_applied);
            if (next == after_failure::find_out) {
                const receipt_says earlier = co_await find_out(on, *receipt, done);
                if (earlier == receipt_says::applied) {
                    done.answer_lost = true;
                    done.results = known_results(steps);
                    receipt.was_applied();
                    co_return done;
                }
                if (earlier == receipt_says::nothing || names_lost_receipt(*failed, receipt->path))
                    throw error(zk_errc::connection_loss, operation, failed->path(),
                                "its receipt " + receipt->path + " was taken away, or written by another client");
                maybe_applied = false;
                if (failed->hung_up()) {
                    receipt.was_refused();
                    throw failed->not_applied();
                }
                next = next_after(*failed, receipt->path, maybe_applied);
            }
            if (next == after_failure::refused) receipt.was_refused();
            const bool replace = next == after_failure::no_receipt && s->when_missing != missing_parents::fail;
            if (next != after_failure::repeat && !replace) throw error(*failed);
            if (replace) receipt.replace();
        }
    } catch (const error& e) {
        // Another request of this call, such as the create of the receipt, says nothing about the steps.
        const bool is_named = e.operation().starts_with(operation);  // maybe with the number of a step
        if (e.outcome_unknown() == maybe_applied && is_named) throw;
        throw error(e.code(), is_named ? e.operation() : operation, e.path(), e.hint(), maybe_applied);
    } catch (const std::system_error& e) {  // of a pause that was cancelled
        throw error(e.code(), operation, s->directory, {}, maybe_applied);
    }
}

}  // namespace zkasio
