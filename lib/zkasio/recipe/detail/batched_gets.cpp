#include <zkasio/recipe/detail/batched_gets.hpp>

#include <zkasio/detail/requests/node_feeds.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace zkasio::detail {

namespace {

constexpr std::size_t most_bytes_of_paths = 64 * 1024, small_answer = 64 * 1024, large_answer = 256 * 1024;
constexpr int enough_lost = 2;
constexpr std::chrono::minutes long_pause(10);  // the connections may have broken by chance

bool is_lost(const reply& r) noexcept { return r.code == zk_errc::connection_loss; }

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
    std::move(call.begin(), call.end(), std::back_inserter(waiting_));
    send();
}

// Without a connection all wait in the table, each for as long as it may.
bool batched_gets::is_bounded() const { return on_.state() == session_state::connected && !are_single(); }
bool batched_gets::are_single() const { return on_.options().reads_only() || is_paused(); }

void batched_gets::send() {
    while (!waiting_.empty() && (under_way_ < most_under_way || !is_bounded())) {
        reads some = take();
        const bool may_be_cut = lost_ > 0 || is_paused();  // with the end of a connection that a batch has ended
        if (some.size() >= fewest && !are_single())
            ask_together(std::move(some));
        else if (may_be_cut)
            ask_again(std::move(some));
        else
            for (read& one : some) on_.requests().submit(std::move(one.get), one.to, request_table::repeat::never);
    }
}

// In a later turn, in which it is known whether the connection is lost.
void batched_gets::send_later() {
    if (waiting_.empty()) return;
    asio::post(on_.strand(), [self = shared_from_this(), alive = on_.shared_from_this()] { self->send(); });
}

// Those that can travel in one request.
batched_gets::reads batched_gets::take() {
    reads some;
    for (std::size_t bytes = 0; !waiting_.empty() && some.size() < most_in_batch_;) {
        const command& next = waiting_.front().get;
        bytes += path_of(*next.what).size() + on_.chroot_length();
        if (!some.empty()) {
            const command& first = some.front().get;
            if (next.pinned != first.pinned || next.patient != first.patient || bytes > most_bytes_of_paths) break;
        }
        some.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
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
    ++under_way_;
    on_.requests().submit(std::move(together), asked, request_table::repeat::never);
    on_.waits().then(asked->answered, [self = shared_from_this(), &r = asked->reply,
                                       batch = std::move(batch)]() mutable {
        --self->under_way_;
        self->learn(r, batch.size());
        self->send_later();
        if (r.code != zk_errc::unimplemented && !is_lost(r)) return self->distribute(r, batch);
        self->ask_again(std::move(batch));
    });
}

// The answer to all reads, or the reason why there is none, is that of each.
void batched_gets::distribute(reply& r, const reads& batch) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        reply& one = batch[i].to->reply;
        one.code = r.code;
        one.sent = r.sent;
        if (!r.code && i < r.results.size()) {
            one.code = r.results[i].code;
            one.data = std::move(r.results[i].data);
            one.stat = r.results[i].stat.value_or(node_stat());
        } else if (r.code) {
            one.data = r.data;  // the hint of the error
        }
        on_.waits().fire(answer_of(batch[i].to));
    }
}

// A server that does not know the request of a batch hangs up behind its answer: the first attempt may be lost with it.
void batched_gets::ask_again(reads all) {
    for (read& one : all) ask_again(std::move(one), false);
}

// In a later turn, in which it is known that the connection is lost.
void batched_gets::ask_again(read one, bool is_last) {
    asio::post(on_.strand(), [self = shared_from_this(), alive = on_.shared_from_this(), one = std::move(one),
                              is_last] {
        core& on = self->on_;
        const auto asked = std::make_shared<kept_reply>();
        on.requests().submit(command(one.get), asked, request_table::repeat::never);
        on.waits().then(asked->answered, [self, &r = asked->reply, one, is_last] {
            if (is_lost(r) && !is_last) return self->ask_again(one, true);
            // Lost first, on another session: a request of no certain session can be sent again.
            if (r.code == errc::session_expired && !one.get.pinned) r.code = zk_errc::connection_loss;
            one.to->reply = std::move(r);
            self->on_.waits().fire(answer_of(one.to));
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
