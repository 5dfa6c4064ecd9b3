#include <zkasio/recipes/multi_mutex.hpp>

#include <zkasio/recipes/detail/contender.hpp>
#include <zkasio/recipes/detail/timed.hpp>
#include <zkasio/recipes/detail/together.hpp>

#include <algorithm>

namespace zkasio {

using namespace recipes::detail;

namespace {

// All the parts, in the order in which they were taken, and one hold over them.
class multi_claim final : public lock_claim {
public:
    multi_claim(std::vector<std::shared_ptr<lock_claim>> parts, std::int64_t token)
        : parts_(std::move(parts)), paths_(all_paths(parts_)), hold_(parts_.front()->on().hold(paths_)), token_(token) {}
    ~multi_claim() override { give_up(); }

    const session_hold& hold() const noexcept override { return hold_; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return parts_.front()->on(); }
    std::int64_t token() const noexcept override { return token_; }
    bool proves() const noexcept override {
        return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->proves(); });
    }
    void body_runs_on(asio::any_io_executor e) override {
        for (const auto& p : parts_) p->body_runs_on(e);
    }
    void give_up() noexcept override {
        hold_.end(true);
        for (auto p = parts_.rbegin(); p != parts_.rend(); ++p) (*p)->give_up();
    }
    asio::awaitable<void> gone() override {
        const auto parts = parts_;
        for (const auto& p : parts) co_await p->gone();
    }

private:
    static std::vector<std::string> all_paths(const std::vector<std::shared_ptr<lock_claim>>& parts) {
        std::vector<std::string> all;
        for (const auto& p : parts) all.insert(all.end(), p->paths().begin(), p->paths().end());
        return all;
    }

    std::vector<std::shared_ptr<lock_claim>> parts_;
    std::vector<std::string> paths_;
    session_hold hold_;
    std::int64_t token_;
};

asio::awaitable<std::optional<lock_guard>> guard_of(std::vector<std::shared_ptr<lock_claim>> parts, std::int64_t token) {
    const auto claim = std::make_shared<multi_claim>(std::move(parts), token);
    if (!claim->hold().held()) co_await claim->hold().confirmed();
    co_return to_guard(claim);
}

}  // namespace

multi_mutex::multi_mutex(client zk, multi_mutex_options options) : zk_(std::move(zk)), options_(options) {}

multi_mutex& multi_mutex::insert(member m) {
    const auto at = std::lower_bound(members_.begin(), members_.end(), m.path,
                                     [](const member& a, const std::string& path) { return a.path < path; });
    if (at != members_.end() && at->path == m.path)
        throw error(errc::invalid_argument, "multi_mutex", m.path, "this lock is there already: it would wait for itself");
    members_.insert(at, std::move(m));
    return *this;
}

std::string multi_mutex::path() const {
    std::string all;
    for (const member& m : members_) all += (all.empty() ? "" : ",") + m.path;
    return all;
}

bool multi_mutex::together() const {
    return members_.size() > 1 && !options_.takes_one_after_another() &&
           std::all_of(members_.begin(), members_.end(), [](const member& m) { return m.as_mutex.has_value(); });
}

void multi_mutex::check_client(const asio::any_io_executor& strand, const std::string& path) const {
    if (strand != zk_.get_executor()) throw error(errc::invalid_argument, "multi_mutex", path, "this lock is another client's");
}

asio::awaitable<std::optional<lock_guard>> multi_mutex::take(multi_mutex self, bool wait) {
    if (self.members_.empty()) throw error(errc::invalid_argument, "multi_mutex", {}, "there are no locks in it");
    if (self.together()) {
        std::vector<wish> wishes;
        for (const member& m : self.members_) {
            self.check_client(m.as_mutex->get_executor(), m.path);
            wishes.emplace_back(m.as_mutex->spec(), lock_kind::exclusive, wait ? patience::wait : patience::first_or_nothing);
        }
        claims_together all = co_await contend_together(self.zk_, std::move(wishes));
        if (all.claims.empty()) co_return std::nullopt;
        co_return co_await guard_of(std::move(all.claims), all.token);
    }
    std::vector<lock_guard> taken;  // released, last first, when one fails
    const auto give_back = [&taken] {
        while (!taken.empty()) taken.pop_back();
    };
    try {
        for (const member& m : self.members_) {
            std::optional<lock_guard> next;
            if (wait)
                next.emplace(co_await m.acquire());
            else
                next = co_await m.try_acquire();
            if (!next) {
                give_back();
                co_return std::nullopt;
            }
            taken.push_back(std::move(*next));
            const session& mine = taken.back().claim()->on();
            self.check_client(mine.get_executor(), m.path);
            if (mine.id() != taken.front().claim()->on().id()) throw error(errc::session_expired, "multi_mutex", m.path);
        }
    } catch (...) {
        give_back();
        throw;
    }
    std::vector<std::shared_ptr<lock_claim>> parts;
    std::int64_t token = 0;
    for (lock_guard& guard : taken) {
        token = std::max(token, guard.token().value());
        parts.push_back(guard.take_claim());
    }
    co_return co_await guard_of(std::move(parts), token);
}

asio::awaitable<lock_guard> multi_mutex::acquire() const { return always(take(*this, true)); }

asio::awaitable<std::optional<lock_guard>> multi_mutex::try_acquire() const { return take(*this, false); }

asio::awaitable<std::optional<lock_guard>> multi_mutex::try_acquire_for(std::chrono::nanoseconds limit) const {
    if (limit == std::chrono::nanoseconds::zero()) return try_acquire();
    return try_acquire_until(limit_after(limit, path()));
}

asio::awaitable<std::optional<lock_guard>> multi_mutex::try_acquire_until(boot_clock::time_point limit) const {
    return acquire_until(zk_, path(), limit, [self = *this] { return self.acquire(); });
}

}  // namespace zkasio
