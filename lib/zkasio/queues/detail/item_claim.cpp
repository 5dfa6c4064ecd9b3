#include <zkasio/queues/detail/item_claim.hpp>

#include <zkasio/error.hpp>
#include <zkasio/queues/detail/claimer.hpp>
#include <zkasio/queues/detail/item_layout.hpp>
#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/dispatch.hpp>
#include <asio/post.hpp>

#include <utility>

namespace zkasio::queue_detail {

void add_dead(transaction& steps, const queue_spec& what, const read_item& item, std::string reason) {
    constexpr std::size_t longest_reason = 4096;
    if (reason.size() > longest_reason) reason.resize(longest_reason);
    const std::string path = join_path(what.dead, dead_name(item.name, item.czxid));
    const create_options how = what.of_mode(create_mode::persistent);
    steps.create(path, bytes(item.data), how);
    steps.create(join_path(path, dead_reason), bytes(std::move(reason)), how);
}

// Removes the claim unless another consumer has claimed the item since: the answer to an earlier attempt may be lost,
// or an operator may have removed the claim.
asio::awaitable<void> item_claim::remove_claim(session on, spec_ptr what, read_item claimed, std::int64_t token) {
    const std::string item = what->item(claimed.name), claim = what->claim(claimed.name);
    auto remove = [&]() -> asio::awaitable<void> {
        bool version_tells = claimed.is_counted;
        if (version_tells) {
            transaction steps;
            steps.check(item, claimed.version).remove(claim, node_version);
            try {
                co_await on.multi(std::move(steps));
            } catch (const error& e) {
                // Another client has removed or written the item: the claim may still be this one.
                version_tells = e.path() != item || (e.code() != zk_errc::no_node && e.code() != zk_errc::bad_version);
                if (version_tells) throw;
            }
        }
        if (version_tells) co_return;
        co_await on.sync(claim);
        const std::optional<node_stat> found = co_await on.exists(claim);
        if (found && found->czxid == token) co_await on.remove(claim, node_version);
    };
    try {
        co_await retry_until_certain(toolbox(on).make_back_off(), remove);
    } catch (const error& e) {
        const bool is_over = e.code() == zk_errc::no_node || (e.code() == zk_errc::bad_version && e.path() == claim) ||
                             e.code() == condition::session_ended || e.code() == condition::cancelled;
        if (!is_over) throw;
    }
}

asio::awaitable<void> item_claim::remove_claim_and_tell(session on, spec_ptr what, read_item claimed,
                                                        std::int64_t token, std::shared_ptr<removal> told) {
    std::optional<error> refused;
    try {
        co_await remove_claim(on, what, claimed, token);
    } catch (const error& e) {
        told->failed = std::current_exception();
        refused.emplace(e);
    }
    if (refused && refused->code() == zk_errc::no_auth)
        toolbox(on).remove_when_allowed(what->claim(claimed.name),
                                        [=] { return remove_claim(on, what, claimed, token); });
    told->ended.fire();
    if (refused) throw error(*refused);  // a background task that fails is logged
}

item_claim::item_claim(session on, spec_ptr what, receipts with, read_item claimed, std::int64_t token)
    : on_(on.patient()),
      what_(std::move(what)),
      receipts_(std::move(with)),
      item_(std::move(claimed)),
      path_(what_->item(item_.name)),
      paths_(1, what_->claim(item_.name)),
      token_(token),
      hold_(on_.hold(paths_)),
      gone_(std::make_shared<removal>(toolbox(on_).make_one_shot_event())) {}

std::shared_ptr<item_claim> item_claim::make(session on, spec_ptr what, receipts with, read_item claimed,
                                             std::int64_t token) {
    const std::shared_ptr<item_claim> made(
        new item_claim(std::move(on), std::move(what), std::move(with), std::move(claimed), token));
    asio::dispatch(made->on_.get_executor(), [made] {
        made->hold_.on_lost([weak = std::weak_ptr<item_claim>(made)](loss_reason) {
            const auto lost = weak.lock();
            if (lost) lost->report(delivery_end::lost);
            // The code that finds the loss may be working on holds: hence a turn of its own.
            if (lost) asio::post(lost->on_.get_executor(), [lost] { lost->return_item(); });
        });
    });
    return made;
}

void item_claim::give_up() noexcept {
    if (!end()) return;
    report(delivery_end::given_back);
    hold_.end(true);
    return_item();
}

void item_claim::return_item() noexcept {
    if (returned_.exchange(true)) return;
    read_item known;  // without the data
    known.name = item_.name;
    known.version = item_.version;
    known.is_counted = item_.is_counted;
    toolbox(on_).run_in_background(remove_claim_and_tell(on_, what_, std::move(known), token_, gone_));
}

namespace {

asio::awaitable<void> until_removed(one_shot_event ended, std::shared_ptr<const std::exception_ptr> failed,
                                    std::string path) {
    co_await errors_as("again", path, ended.wait());
    if (*failed) rethrow_to_caller(*failed, "again", path);
}

}  // namespace

asio::awaitable<void> item_claim::gone() {
    const std::shared_ptr<const std::exception_ptr> failed(gone_, &gone_->failed);
    return errors_as("again", path_, until_removed(gone_->ended, failed, path_));
}

// Once. A claim that was lost before it was given back was lost.
void item_claim::report(delivery_end how) noexcept {
    if (reported_.exchange(true)) return;
    delivery_report r;
    r.how = how;
    if (how != delivery_end::done && how != delivery_end::rejected) {
        r.lost = hold_.reason();
        if (r.lost != loss_reason::none) r.how = delivery_end::lost;
    }
    r.attempt = item_.attempt();
    r.token = token_;
    r.waited = item_.waited;
    r.claimed = claimed_;
    r.ended = boot_clock::now();
    if (toolbox(on_).has_observer()) r.item = item_.name;
    send_report(on_, std::move(r), what_->path);
}

void item_claim::throw_lost(const std::string& operation, const std::string& why) const {
    throw error(errc::lock_lost, operation, path_, why);
}

asio::awaitable<void> item_claim::finish(std::shared_ptr<item_claim> self, transaction also, std::string operation) {
    if (self->over_) throw error(errc::lock_released, operation, self->path_);
    if (const loss_reason lost = self->hold_.reason(); lost != loss_reason::none)
        self->throw_lost(operation, std::string(to_string(lost)));
    transaction steps;
    steps.remove(self->paths_.front(), node_version);
    steps.remove(self->path_, self->item_.version).append(std::move(also));
    const char* taken_away = nullptr;
    try {
        co_await self->receipts_.apply(std::move(steps), operation);
    } catch (const error& e) {
        const bool is_missing = e.code() == zk_errc::no_node, is_other = e.code() == zk_errc::bad_version;
        if (is_missing && e.path() == self->path_)
            taken_away = "another client has removed the item in spite of the claim";
        else if (e.path() == self->path_ ? is_other : e.path() == self->paths_.front() && (is_missing || is_other))
            taken_away = "another client has removed the claim, or written the item";
        else
            throw;
    }
    if (taken_away && self->over_) throw error(errc::lock_released, operation, self->path_);  // by another call
    if (taken_away) {
        self->hold_.lose(loss_reason::node_deleted, self->paths_.front());
        self->throw_lost(operation, taken_away);
    }
    if (!self->end()) co_return;
    self->report(operation == "reject" ? delivery_end::rejected : delivery_end::done);
    self->hold_.end(true);
    self->gone_->ended.fire();
}

asio::awaitable<void> item_claim::reject(std::shared_ptr<item_claim> self, std::string reason) {
    if (!self->item_.is_counted)
        throw error(errc::too_large, "reject", self->path_, "the item is too large to be written again");
    transaction burial;
    read_item item = self->item_;
    item.data = self->what_->payload.pack(std::move(item.data));
    add_dead(burial, *self->what_, item, std::move(reason));
    back_off pauses = toolbox(self->on_).make_back_off();
    for (;;) {
        try {
            co_await finish(self, burial, "reject");
            co_return;
        } catch (const error& e) {
            const bool no_directory = e.code() == zk_errc::no_node && parent_path(e.path()) == self->what_->dead;
            if (!no_directory || e.outcome_unknown()) throw;
        }
        co_await create_directories(self->on_, self->what_);
        co_await pauses.pause();
    }
}

void item_claim::give_up_after(std::chrono::milliseconds pause) {
    if (!end()) return;
    report(delivery_end::given_back);
    hold_.end();
    asio::dispatch(on_.get_executor(), [self = shared_from_this(), pause] {
        claimer::of(self->on_, self->what_)->return_after(pause, self);
    });
}

}  // namespace zkasio::queue_detail
