#include <zkasio/barriers/double_barrier.hpp>

#include <zkasio/barriers/detail/barrier_member.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/errors.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace zkasio {

using barrier_detail::barrier_member;

namespace {

using member_ptr = std::shared_ptr<barrier_member>;

asio::awaitable<loss_reason> until_outside(member_ptr member) {
    if (!member) co_return loss_reason::released;
    co_return co_await member->hold().lost();
}

asio::awaitable<void> until_all_left(member_ptr member, [[maybe_unused]] std::shared_ptr<const void> open) {
    if (!member) co_return;
    co_await barrier_member::until_left(member);
}

}  // namespace

barrier_entry::barrier_entry(std::shared_ptr<barrier_member> member, std::shared_ptr<const void> open) noexcept
    : open_(std::move(open)), member_(std::move(member)) {}

barrier_entry& barrier_entry::operator=(barrier_entry&& other) noexcept {
    if (this != &other) {
        begin_to_leave();
        member_ = std::move(other.member_);
        open_ = std::move(other.open_);
    }
    return *this;
}

void barrier_entry::begin_to_leave() noexcept {
    if (member_) barrier_member::begin_to_leave(member_);
}

bool barrier_entry::held() const noexcept { return member_ && member_->hold().held(); }
loss_reason barrier_entry::reason() const noexcept {
    return member_ ? member_->hold().reason() : loss_reason::released;
}
asio::awaitable<loss_reason> barrier_entry::lost() const { return until_outside(member_); }

asio::awaitable<void> barrier_entry::leave() {
    begin_to_leave();
    return until_all_left(member_, std::move(open_));
}

const std::string& barrier_entry::path() const noexcept {
    static const std::string none;
    return member_ ? member_->path() : none;
}

using barrier_detail::barrier_member;
using barrier_detail::barrier_spec;

namespace {

// A member that has not passed yet: withdraws when destroyed.
class entering_member {
public:
    entering_member(const session& on, const barrier_spec& spec)
        : member_(std::make_shared<barrier_member>(on, spec)) {}
    entering_member(const entering_member&) = delete;
    entering_member& operator=(const entering_member&) = delete;
    ~entering_member() {
        if (member_) barrier_member::begin_to_withdraw(std::move(member_));
    }
    barrier_member* operator->() const noexcept { return member_.get(); }
    std::shared_ptr<barrier_member> take() noexcept { return std::move(member_); }

private:
    std::shared_ptr<barrier_member> member_;
};

barrier_spec spec_of(std::string path, std::size_t members, const double_barrier_options& options) {
    barrier_spec spec;
    spec.path = std::move(path);
    spec.members = members;
    spec.exactly = options.is_exact();
    spec.data = options.data();
    spec.entries = options.acl();
    return spec;
}

}  // namespace

double_barrier::double_barrier(client zk, std::string path, std::size_t members, double_barrier_options options)
    : zk_(std::move(zk)), path_(std::move(path)), members_(members), options_(std::move(options)) {
    require_directory("double_barrier", path_);
    if (members == 0) throw error(errc::invalid_argument, "double_barrier", path_, "it takes at least one member");
}

asio::awaitable<barrier_entry> double_barrier::enter_in_session(double_barrier self) {
    const std::string& path = self.path_;
    try {
        const session on = co_await toolbox(self.zk_).current_session("enter", path);
        const session_events events = self.zk_.events();
        const barrier_spec spec = spec_of(path, self.members_, self.options_);
        for (;;) {
            entering_member member(on, spec);
            const bool inside = co_await member->passed(events);
            if (inside) co_return barrier_entry(member.take(), self.zk_.keep_open());
        }
    } catch (...) {
        rethrow_without_trace("enter", path);
    }
}

asio::awaitable<barrier_entry> double_barrier::enter_as(double_barrier self) {
    barrier_report r;
    r.asked = boot_clock::now();
    std::optional<barrier_entry> entry;
    std::exception_ptr failed;
    try {
        barrier_entry inside = co_await enter_in_session(self);
        entry.emplace(std::move(inside));
    } catch (...) {
        failed = std::current_exception();
    }
    r.code = failure_of(failed);
    r.ended = boot_clock::now();
    send_report(self.zk_, std::move(r), self.path_);
    if (failed) std::rethrow_exception(failed);
    co_return std::move(*entry);
}

asio::awaitable<barrier_entry> double_barrier::enter() const { return enter_as(*this); }

asio::awaitable<void> double_barrier::run_inside(std::function<asio::awaitable<void>(barrier_entry&)> body,
                                                 double_barrier self) {
    if (!body) throw error(errc::invalid_argument, "run", self.path_, "the body is empty");
    barrier_entry entry = co_await enter_as(self);
    const std::shared_ptr<barrier_member> member = entry.member_;
    std::function<asio::awaitable<void>()> bound = [&] { return body(entry); };
    std::exception_ptr failed;
    try {
        co_await member->hold().run(std::move(bound));
    } catch (...) {
        failed = std::current_exception();
    }
    const loss_reason why = member->hold().reason();
    if (is_loss(why))
        throw_with_body_failure(error(errc::lock_lost, "run", self.path_, to_string(why)), failed);
    if (failed) std::rethrow_exception(failed);
    if (entry.member_) co_await entry.leave();
}

}  // namespace zkasio
