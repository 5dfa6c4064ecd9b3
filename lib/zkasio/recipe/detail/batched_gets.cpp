#include <zkasio/recipe/detail/batched_gets.hpp>

#include <zkasio/detail/requests/node_feeds.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace zkasio::detail {

namespace {

constexpr std::size_t most_batches = 2, most_alone = 256;  // under way
constexpr std::size_t in_turn = 8;                         // nodes of one call, before the next call's
constexpr std::size_t most_bytes_of_paths = 64 * 1024, small_answer = 64 * 1024, large_answer = 256 * 1024;
constexpr int enough_lost = 2;
constexpr std::chrono::minutes long_pause(10);  // the connections may have broken by chance

bool is_lost(const reply& r) noexcept { return r.code == zk_errc::connection_loss; }

// False: the caller has left, and no function is to be called.
bool is_wanted(const batched_gets::read& one) noexcept {
    return one.to.use_count() > 1 || one.to->answered.has_calls();
}

// The answer to all reads, or the reason why there is none, is that of each.
void distribute(core& on, reply& r, const batched_gets::reads& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        reply& one = all[i].to->reply;
        one.code = r.code;
        one.sent = r.sent;
        if (!r.code && i < r.results.size()) {
            one.code = r.results[i].code;
            one.data = std::move(r.results[i].data);
            one.stat = r.results[i].stat.value_or(node_stat());
        } else if (r.code) {
            one.data = r.data;  // the hint of the error
        }
        on.waits().fire(answer_of(all[i].to));
    }
}

}  // namespace

std::shared_ptr<batched_gets> batched_gets::of(core& on) {
    session_record& session = *on.sessions().current();
    return std::static_pointer_cast<batched_gets>(session.local("batches of start_gets()", [&] {
        auto made = std::make_shared<batched_gets>(on);
        on.waits().then(*session.ended, [made] {});  // the session keeps it
        return made;
    }));
}

void batched_gets::ask(reads call) {
    calls_.push_back(std::move(call));
    send();
}

bool batched_gets::are_single() const { return on_.options().reads_only() || is_paused(); }

void batched_gets::send() {
    while (!calls_.empty()) {
        if (on_.state() != session_state::connected) return wait_for_connection();
        const bool is_single = are_single();
        if (is_single ? alone_ >= most_alone : batches_ >= most_batches) return;
        reads some = take();
        const bool may_be_cut = lost_ > 0 || is_paused();  // with the end of a connection that a batch has ended
        if (some.size() >= fewest && !is_single)
            ask_together(std::move(some));
        else if (may_be_cut)
            ask_again(std::move(some));
        else
            for (read& one : some) ask_alone(std::move(one));
    }
}

// In a later turn, in which it is known whether the connection is lost.
void batched_gets::send_later() {
    if (calls_.empty()) return;
    asio::post(on_.strand(), [self = shared_from_this(), alive = on_.shared_from_this()] { self->send(); });
}

// Each call by one request of the table, which ends as each of its reads would: so a new connection does not begin with
// all of them.
void batched_gets::wait_for_connection() {
    for (reads& call : std::exchange(calls_, {})) {
        command wait;
        wait.pinned = call.front().get.pinned;
        wait.patient = call.front().get.patient;
        const auto waited = std::make_shared<kept_reply>();
        on_.requests().submit(std::move(wait), waited, request_table::repeat::never);
        on_.waits().then(waited->answered, [&on = on_, &r = waited->reply, call = std::move(call)]() mutable {
            if (r.code) return distribute(on, r, call);
            const auto gets = of(on);  // of another session, if no certain one is asked
            gets->calls_.push_back(std::move(call));
            gets->send_later();
        });
    }
}

// Those that can travel in one request.
batched_gets::reads batched_gets::take() {
    reads some;
    std::size_t bytes = 0;
    const auto size_of_path = [this](const read& one) { return path_of(*one.get.what).size() + on_.chroot_length(); };
    const auto fits = [&](const read& next) {
        if (some.empty()) return true;
        const command& first = some.front().get;
        return next.get.pinned == first.pinned && next.get.patient == first.patient && some.size() < most_in_batch_ &&
               bytes + size_of_path(next) <= most_bytes_of_paths;
    };
    for (auto next = calls_.begin(); next != calls_.end() && some.size() < most_in_batch_;) {
        const auto call = next++;
        std::size_t n = 0;
        while (!call->empty()) {
            read& one = call->front();
            if (is_wanted(one)) {
                if (n == in_turn || !fits(one)) break;
                ++n;
                bytes += size_of_path(one);
                some.push_back(std::move(one));
            }
            call->pop_front();
        }
        if (call->empty()) {
            calls_.erase(call);
        } else if (n > 0) {
            calls_.splice(calls_.end(), calls_, call);
            if (next == calls_.end()) next = call;
        }
    }
    return some;
}

void batched_gets::ask_together(reads batch) {
    multi_read_request all;
    for (const read& one : batch) all.reads.emplace_back(std::get<get_request>(*one.get.what));
    command together(std::move(all));
    together.pinned = batch.front().get.pinned;
    together.patient = batch.front().get.patient;
    const auto asked = std::make_shared<kept_reply>();
    ++batches_;
    on_.requests().submit(std::move(together), asked, request_table::repeat::never);
    on_.waits().then(asked->answered, [self = shared_from_this(), &r = asked->reply,
                                       batch = std::move(batch)]() mutable {
        --self->batches_;
        self->learn(r, batch.size());
        self->send_later();
        if (r.code != zk_errc::unimplemented && !is_lost(r)) return distribute(self->on_, r, batch);
        self->ask_again(std::move(batch));
    });
}

void batched_gets::ask_alone(read one) {
    ++alone_;
    on_.requests().submit(std::move(one.get), one.to, request_table::repeat::never);
    on_.waits().then(one.to->answered, [self = shared_from_this()] { self->answered_alone(); });
}

void batched_gets::answered_alone() {
    --alone_;
    send_later();
}

// A server that does not know the request of a batch hangs up behind its answer: the first attempt may be lost with it.
void batched_gets::ask_again(reads all) {
    alone_ += all.size();
    for (read& one : all) ask_again(std::move(one), false);
}

// In a later turn, in which it is known that the connection is lost.
void batched_gets::ask_again(read one, bool is_last) {
    asio::post(on_.strand(), [self = shared_from_this(), alive = on_.shared_from_this(), one = std::move(one),
                              is_last] {
        if (!is_wanted(one)) return self->answered_alone();
        core& on = self->on_;
        const auto asked = std::make_shared<kept_reply>();
        on.requests().submit(command(one.get), asked, request_table::repeat::never);
        on.waits().then(asked->answered, [self, &r = asked->reply, one, is_last] {
            if (is_lost(r) && !is_last) return self->ask_again(one, true);
            // Lost first, on another session: a request of no certain session can be sent again.
            if (r.code == errc::session_expired && !one.get.pinned) r.code = zk_errc::connection_loss;
            one.to->reply = std::move(r);
            self->on_.waits().fire(answer_of(one.to));
            self->answered_alone();
        });
    });
}

// ------------------------------------------------------------------------------------- what the servers teach

void batched_gets::learn(const reply& r, std::size_t n) {
    if (is_lost(r)) return learn_loss(n);
    if (r.code == zk_errc::unimplemented) pause();
    if (r.code) return;
    lost_ = 0;
    answered_ = std::max(answered_, n);
    const std::size_t bytes = size_of(r);
    if (bytes > large_answer && n <= most_in_batch_)  // not again for one that was sent before
        halve();
    else if (bytes < small_answer && n == most_in_batch_ && boot_clock::now() >= larger_from_)
        most_in_batch_ = std::min(2 * most_in_batch_, most);
}

// There are servers that hang up at such a request. Several batches that are lost with one connection count once.
void batched_gets::learn_loss(std::size_t n) {
    const std::uint64_t connection = on_.requests().feeds().connection();
    if (std::exchange(lost_with_, connection) == connection) return;
    const bool may_be_too_large = n > answered_;
    if (may_be_too_large) {
        halve();
        larger_from_ = boot_clock::now() + long_pause;
    }
    if (++lost_ < enough_lost) return;
    lost_ = 0;
    answered_ = 0;
    pause();
}

void batched_gets::halve() {
    if (most_in_batch_ / 2 >= fewest)
        most_in_batch_ /= 2;
    else
        pause();  // of large nodes, more are under way one by one
}

void batched_gets::pause() { single_until_ = boot_clock::now() + long_pause; }

}  // namespace zkasio::detail
