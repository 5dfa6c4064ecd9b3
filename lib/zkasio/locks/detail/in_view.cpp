#include <zkasio/locks/detail/in_view.hpp>

#include <zkasio/error.hpp>
#include <zkasio/recipe/hold_in_view.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <cstdint>
#include <exception>

namespace zkasio::lock_detail {
namespace {

// A claim of the client itself, as a view sees it.
class claim_in_view final : public lock_claim {
public:
    claim_in_view(std::shared_ptr<lock_claim> of, const client& zk)
        : of_(std::move(of)), on_(of_->on().in_view_of(zk)), hold_(of_->hold(), on_) {
        const toolbox tools(on_);
        for (const std::string& path : of_->paths()) paths_.push_back(tools.shown_path(path));
    }

    const std::shared_ptr<lock_claim>& of() const noexcept { return of_; }

    const session_hold& hold() const noexcept override { return hold_.hold(); }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return of_->token(); }
    std::uint64_t turn() const noexcept override { return of_->turn(); }
    std::vector<fencing_token> tokens() const override { return of_->tokens(); }
    bool held() const noexcept override { return of_->held(); }
    boot_clock::time_point held_until() const noexcept override { return of_->held_until(); }
    loss_reason reason() const noexcept override { return of_->reason(); }
    std::optional<std::int32_t> sequence() const noexcept override { return of_->sequence(); }
    std::optional<std::uint32_t> slot() const noexcept override { return of_->slot(); }
    bool proves() const noexcept override { return of_->proves(); }
    void body_begins(asio::any_io_executor e) override { of_->body_begins(std::move(e)); }
    void body_ends(asio::any_io_executor e) noexcept override { of_->body_ends(std::move(e)); }
    void lose(loss_reason why) noexcept override { of_->lose(why); }
    void asked_back() noexcept override { of_->asked_back(); }
    void give_up() noexcept override { of_->give_up(); }
    asio::awaitable<void> gone() override { return is_gone(of_, on_); }

private:
    static asio::awaitable<void> is_gone(std::shared_ptr<lock_claim> of, session on);

    const std::shared_ptr<lock_claim> of_;
    const session on_;
    const hold_in_view hold_;
    std::vector<std::string> paths_;
};

// In a catch block.
[[noreturn]] void rethrow_in_view(const toolbox& tools) {
    try {
        throw;
    } catch (const error& e) {
        const std::string shown = tools.shown_path(e.path());
        if (shown == e.path()) throw;
        throw e.renamed(e.operation(), shown);
    }
}

asio::awaitable<void> claim_in_view::is_gone(std::shared_ptr<lock_claim> of, session on) {
    try {
        co_await of->gone();
    } catch (...) {
        rethrow_in_view(toolbox(on));
    }
}

void show(lock_guard& guard, const client& zk) {
    if (!guard.claim()) return;
    lock_guard shown(std::make_shared<claim_in_view>(guard.claim(), zk), zk.keep_open());
    guard.take_claim();
    guard = std::move(shown);
}
void show(std::optional<lock_guard>& guard, const client& zk) {
    if (guard) show(*guard, zk);
}
void show(std::vector<lock_guard>& guards, const client& zk) {
    for (lock_guard& guard : guards) show(guard, zk);
}

}  // namespace

template <class Result>
asio::awaitable<Result> translated(client zk, asio::awaitable<Result> acquiring) {
    try {
        Result got = co_await std::move(acquiring);
        show(got, zk);
        co_return got;
    } catch (...) {
        rethrow_in_view(toolbox(zk));
    }
}

template asio::awaitable<lock_guard> translated(client, asio::awaitable<lock_guard>);
template asio::awaitable<std::optional<lock_guard>> translated(client, asio::awaitable<std::optional<lock_guard>>);
template asio::awaitable<std::vector<lock_guard>> translated(client, asio::awaitable<std::vector<lock_guard>>);

lock_attempt translated(client zk, lock_attempt attempt) {
    return [zk = std::move(zk), attempt = std::move(attempt)](if_contended when_contended) {
        return translated(zk, attempt(when_contended));
    };
}

acquire_options translated(const client& zk, acquire_options how) {
    const position_observer tell = [tools = toolbox(zk), observer = how.on_position()](const queue_position& at) {
        queue_position shown = at;
        shown.predecessor = tools.shown_path(std::move(shown.predecessor));
        observer(shown);
    };
    how.on_position(tell);
    return how;
}

std::shared_ptr<lock_claim> claim_of_client(std::shared_ptr<lock_claim> claim) {
    const auto in_view = std::dynamic_pointer_cast<claim_in_view>(claim);
    return in_view ? in_view->of() : std::move(claim);
}

}  // namespace zkasio::lock_detail
