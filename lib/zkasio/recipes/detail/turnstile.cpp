#include <zkasio/recipes/detail/turnstile.hpp>

#include <zkasio/recipes/detail/rethrow.hpp>
#include <zkasio/recipes/detail/running_bodies.hpp>
#include <zkasio/recipes/lock_claim.hpp>

#include <asio/dispatch.hpp>

#include <algorithm>

namespace zkasio::recipes::detail {

struct turnstile::pass::state {
    state(const session& on, std::string p) : path(std::move(p)), free(on.make_one_shot()), placed(on.make_one_shot()) {}
    std::string path;
    one_shot free;
    one_shot placed;                  // in the line
    std::error_code over;             // read after `free` has fired
    bool first = false;               // when it was placed, of those who are not leaving
    bool leaving = false;             // strand
    running_bodies bodies;            // strand
    std::shared_ptr<turnstile> line;  // strand
};

turnstile::pass::pass(session on, std::string path, asio::any_io_executor from)
    : on_(std::move(on)), state_(std::make_shared<state>(on_, std::move(path))) {
    asio::dispatch(on_.get_executor(), [on = on_, s = state_, from = std::move(from)] {
        s->line = std::static_pointer_cast<turnstile>(on.part("turnstile " + s->path, [] { return std::make_shared<turnstile>(); }));
        auto& line = s->line->line_;
        s->first = std::all_of(line.begin(), line.end(), [](const state* ahead) { return ahead->leaving; });
        line.push_back(s.get());
        s->over = s->line->over_;
        const bool itself = std::any_of(line.begin(), line.end(), [&](const state* ahead) {
            return !ahead->leaving && ahead->bodies.on(from);
        });
        if (itself && !s->over) s->over = errc::would_deadlock;
        if (s->over || line.size() == 1) s->free.fire();
        s->placed.fire();
    });
}

asio::awaitable<void> turnstile::pass::turn_of(std::shared_ptr<state> s) {
    try {
        co_await s->free.wait();
    } catch (...) {
        rethrow_as("acquire", s->path);
    }
    if (s->over) throw error(s->over, "acquire", s->path, s->over == errc::would_deadlock ? holds_it_already : "");
}

asio::awaitable<bool> turnstile::pass::is_first(std::shared_ptr<state> s) {
    try {
        co_await s->placed.wait();
    } catch (...) {
        rethrow_as("acquire", s->path);
    }
    co_return s->first;
}

asio::awaitable<void> turnstile::pass::turn() { return turn_of(state_); }
asio::awaitable<bool> turnstile::pass::now() { return is_first(state_); }

void turnstile::pass::leaving() noexcept {
    try {
        asio::dispatch(on_.get_executor(), [s = state_] { s->leaving = true; });
    } catch (...) {
        // Out of memory: somebody is refused who need not be.
    }
}

void turnstile::pass::done() noexcept {
    if (std::exchange(done_, true)) return;
    try {
        asio::dispatch(on_.get_executor(), [s = state_] {
            const auto line = std::move(s->line);
            auto& waiting = line->line_;
            if (waiting.front() == s.get())  // most often: the line may be long
                waiting.pop_front();
            else
                std::erase(waiting, s.get());
            if (!line->line_.empty()) line->line_.front()->free.fire();
        });
    } catch (...) {
        // Out of memory: nobody gets through any more until the session ends.
    }
}

void turnstile::pass::body_begins(asio::any_io_executor executor) {
    asio::dispatch(on_.get_executor(), [s = state_, executor = std::move(executor)] { s->bodies.begin(executor); });
}

void turnstile::pass::body_ends(asio::any_io_executor executor) noexcept {
    try {
        asio::dispatch(on_.get_executor(), [s = state_, executor = std::move(executor)] { s->bodies.end(executor); });
    } catch (...) {
        // Out of memory: nobody will ever be on that executor again.
    }
}

void turnstile::session_over(std::error_code why) noexcept {
    over_ = why;
    for (pass::state* s : line_) {
        s->over = why;
        s->free.fire();
    }
}

}  // namespace zkasio::recipes::detail
