#include <zkasio/locks/lock_owner.hpp>

#include <zkasio/recipe/events.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cassert>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace zkasio {
namespace {

// The state that all guards of one owner share: the lock is given back with the last guard.
struct counted {
    std::shared_ptr<lock_claim> claim;
    lock_kind kind;
    std::shared_ptr<const void> open;  // of the client that has acquired the lock; the guards may be other clients'
    std::function<void()> forget;      // called when the last guard is given up
    std::mutex mutex;
    int guards = 0;  // guarded by the mutex
};

// One guard's share of a `counted` lock.
class part_of final : public lock_claim {
public:
    explicit part_of(std::shared_ptr<counted> all) : all_(std::move(all)) {}
    ~part_of() override { give_up(); }

    const session_hold& hold() const noexcept override { return all_->claim->hold(); }
    const std::vector<std::string>& paths() const noexcept override { return all_->claim->paths(); }
    const session& on() const noexcept override { return all_->claim->on(); }
    std::int64_t token() const noexcept override { return all_->claim->token(); }
    std::uint64_t turn() const noexcept override { return all_->claim->turn(); }
    std::vector<fencing_token> tokens() const override { return all_->claim->tokens(); }
    bool held() const noexcept override { return all_->claim->held(); }
    boot_clock::time_point held_until() const noexcept override { return all_->claim->held_until(); }
    loss_reason reason() const noexcept override { return all_->claim->reason(); }
    void asked_back() noexcept override { all_->claim->asked_back(); }
    std::optional<std::int32_t> sequence() const noexcept override { return all_->claim->sequence(); }
    bool proves() const noexcept override { return all_->claim->proves(); }
    void body_begins(asio::any_io_executor e) override {
        {
            const std::lock_guard lock(all_->mutex);
            ++bodies_;
        }
        all_->claim->body_begins(std::move(e));
    }
    void body_ends(asio::any_io_executor e) noexcept override {
        all_->claim->body_ends(std::move(e));
        bool was_waited_for = false;
        {
            const std::lock_guard lock(all_->mutex);
            was_waited_for = --bodies_ == 0 && lost_;
            assert(bodies_ >= 0);
        }
        if (was_waited_for) give_up();
    }

    // Other guards of the owner may have the lock for another reason. Then only this guard's share is given up, after
    // its bodies have ended. Otherwise the lock is lost.
    void lose(loss_reason why) noexcept override {
        bool is_last = false;
        {
            const std::lock_guard lock(all_->mutex);
            if (given_up_) return;
            is_last = all_->guards == 1;
            lost_ = !is_last;
            if (lost_ && bodies_ > 0) return;
        }
        if (is_last)
            all_->claim->lose(why);
        else
            give_up();
    }

    void give_up() noexcept override {
        {
            const std::lock_guard lock(all_->mutex);
            if (std::exchange(given_up_, true)) return;
            last_ = --all_->guards == 0;
            assert(all_->guards >= 0);
        }
        if (!last_) return;
        all_->claim->give_up();
        all_->forget();
        all_->open.reset();
    }

    asio::awaitable<void> gone() override {
        const auto all = all_;
        if (last_) co_await all->claim->gone();
    }

private:
    std::shared_ptr<counted> all_;
    // Guarded by the mutex; last_ does not change after give_up().
    bool given_up_ = false, last_ = false, lost_ = false;
    int bodies_ = 0;
};

}  // namespace

struct lock_owner::state {
    struct slot {
        std::weak_ptr<counted> held;
        std::shared_ptr<const one_shot_event> acquiring;  // fired when the acquire has ended, with or without a lock
    };
    std::mutex mutex;
    std::map<std::string, slot> slots;

    // The acquire that one coroutine makes for this owner, while the owner's other coroutines wait. The destructor lets
    // them go on, however the acquire has ended.
    struct acquiring {
        state& s;
        const std::string& key;
        const std::shared_ptr<const one_shot_event>& done;
        std::shared_ptr<counted> got;
        ~acquiring() {
            {
                const std::lock_guard lock(s.mutex);
                slot& mine = s.slots[key];
                if (mine.acquiring == done) {
                    mine.acquiring.reset();
                    mine.held = got;
                    if (!got) s.slots.erase(key);
                }
            }
            done->fire();
        }
    };

    // Erases the slot of `key`, unless the lock is held or is being acquired again.
    static void forget(const std::weak_ptr<state>& weak, const std::string& key) noexcept {
        const auto self = weak.lock();
        if (!self) return;
        const std::lock_guard lock(self->mutex);
        const auto it = self->slots.find(key);
        if (it == self->slots.end() || it->second.acquiring) return;
        const auto held = it->second.held.lock();
        if (!held || !is_held(*held)) self->slots.erase(it);
    }
    static bool is_held(counted& c) noexcept {
        const std::lock_guard lock(c.mutex);
        return c.guards > 0;
    }

    // Adds a guard to a lock that the owner has. Null: the owner does not hold the lock.
    std::shared_ptr<lock_claim> join(slot& s, lock_kind kind) {
        const auto held = s.held.lock();
        if (!held) return nullptr;
        const std::lock_guard lock(held->mutex);
        if (held->guards == 0) return nullptr;
        const std::string& path = held->claim->paths().front();
        const loss_reason why = held->claim->hold().reason();
        if (why != loss_reason::none) throw error(errc::lock_lost, "acquire", path, to_string(why));
        if (kind == lock_kind::exclusive && held->kind == lock_kind::shared)
            throw error(errc::would_deadlock, "acquire", path,
                        "a shared lock cannot be upgraded: two who try would wait for each other; release it first");
        ++held->guards;
        return std::make_shared<part_of>(held);
    }
};

lock_owner::lock_owner() : state_(std::make_shared<state>()) {}

asio::awaitable<std::shared_ptr<lock_claim>> lock_owner::take(std::shared_ptr<state> self, client zk, std::string key,
                                                              std::string path, lock_kind kind, others when_acquiring,
                                                              acquire_function acquire) {
    if (!self) throw error(errc::invalid_argument, "acquire", path, "this lock_owner was moved from");
    const auto done = std::make_shared<const one_shot_event>(toolbox(zk).make_one_shot_event());
    if (zk.is_rooted()) key += '\0' + toolbox(zk).whole_path("/");  // views name different nodes alike
    std::shared_ptr<const one_shot_event> first;
    for (;;) {
        std::shared_ptr<lock_claim> joined;
        std::exception_ptr refused;
        {
            const std::lock_guard lock(self->mutex);
            state::slot& slot = self->slots[key];
            try {
                joined = self->join(slot, kind);
            } catch (...) {
                refused = std::current_exception();
            }
            if (!joined && !refused) {
                if (!slot.acquiring || slot.acquiring == first)
                    slot.acquiring = done;  // none acquires, or the acquiring client was closed
                first = slot.acquiring;
            }
        }
        if (!joined && !refused && first == done) break;
        if (joined || refused || when_acquiring == others::refuse) {
            co_await yield_turn();
            if (refused) std::rethrow_exception(refused);
            co_return joined;
        }
        try {
            co_await first->wait();
            first = nullptr;
        } catch (const error& e) {
            // errc::client_closed: the client of the coroutine that was acquiring is closed; this coroutine acquires.
            if (e.code() != errc::client_closed) throw error(e.code(), "acquire", path);
        }
    }
    // From here on this coroutine acquires for the owner.
    state::acquiring end{*self, key, done, nullptr};
    std::shared_ptr<lock_claim> claim = co_await acquire();
    if (!claim) co_return nullptr;
    end.got = std::make_shared<counted>();
    end.got->claim = std::move(claim);
    end.got->kind = kind;
    end.got->open = zk.keep_open();
    end.got->forget = [weak = std::weak_ptr<state>(self), key] { state::forget(weak, key); };
    end.got->guards = 1;
    co_return std::make_shared<part_of>(end.got);
}

}  // namespace zkasio
