#include "team.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

namespace demo {

using namespace std::chrono_literals;
using state = member::state;

asio::awaitable<member*> team::start(std::string name) {
    const std::vector<std::string> arguments{"zkasio_demo",
                                             "worker",
                                             "--connect=" + options_.servers,
                                             "--root=" + nodes_.root,
                                             "--name=" + name,
                                             fmt::format("--coroutines={}", options_.coroutines),
                                             fmt::format("--session-timeout={}", options_.session_timeout.count())};
    member* const m = &members_.emplace_back(io_.get_executor(), name, arguments);
    asio::co_spawn(io_, listen(m), asio::detached);
    const auto ready = [m] { return m->session_timeout > 0ms; };
    if (!co_await until(ready, clock::now() + 20s)) throw std::runtime_error(name + " has no session within 20 s");
    co_return m;
}

void team::go(member& m) {
    m.child.write(command::go);
    m.what = state::contending;
}

asio::awaitable<member*> team::a_holder() {
    const auto contends = [](const member& m) { return m.what == state::contending; };
    const auto found = std::find_if(members_.begin(), members_.end(), contends);
    if (found == members_.end()) throw std::runtime_error("no process contends");
    member* const m = &*found;
    m->child.write(command::hold);
    const auto holds = [m] { return m->what == state::holding; };
    if (!co_await until(holds, clock::now() + 30s))
        throw std::runtime_error(m->name + " did not get the lock within 30 s");
    co_return m;
}

bool team::all_over() const {
    return std::all_of(members_.begin(), members_.end(), [](const member& m) { return m.over; });
}

asio::awaitable<std::int64_t> team::race(std::string_view kind, std::chrono::seconds time) {
    std::vector<member*> all;
    for (member& m : members_) {
        if (m.what != state::contending) continue;
        all.push_back(&m);
        m.raced.reset();
        m.child.write(fmt::format("{} {}", command::race, kind));
    }
    const auto never = [] { return false; };
    co_await until(never, clock::now() + time);
    for (member* m : all) m->child.write(command::halt);
    const auto told = [&all] {
        return std::all_of(all.begin(), all.end(), [](const member* m) { return m->raced || m->over; });
    };
    if (!co_await until(told, clock::now() + 15s)) throw std::runtime_error("a race does not end within 15 s");
    std::int64_t times = 0;
    for (const member* m : all) times += m->raced.value_or(0);
    co_return times;
}

asio::awaitable<void> team::end() {
    for (member& m : members_) {
        if (m.over || m.what == state::killed) continue;
        m.what = state::leaving;
        m.child.write(command::stop);
    }
    const auto done = [this] { return all_over(); };
    if (!co_await until(done, clock::now() + 15s)) throw std::runtime_error("not all workers have ended within 15 s");
}

asio::awaitable<void> team::put_down() {
    put_down_ = true;
    for (member& m : members_) {
        m.child.signal(SIGCONT);
        m.child.close_input();
    }
    const auto done = [this] { return all_over(); };
    if (!co_await until(done, clock::now() + 3s))
        for (member& m : members_) m.child.signal(SIGKILL);
    co_await until(done, clock::now() + 3s);
}

asio::awaitable<void> team::listen(member* m) {
    for (;;) {
        const std::vector<std::string> lines = co_await m->child.read();
        if (lines.empty()) break;
        for (const std::string& line : lines) on_message(*m, to_message(line));
        news_.cancel();
    }
    const int status = m->child.reap();
    m->over = true;
    const bool meant_to = m->what == state::killed || (m->what == state::leaving && status == 0);
    if (m->what != state::killed) m->what = state::ended;
    news_.cancel();
    if (!meant_to && !put_down_) lost_(fmt::format("{} {}", m->name, describe_status(status)));
}

void team::on_message(member& m, const message& said) {
    if (put_down_) return;
    if (said.word == event::acquired) {
        if (const auto a = to_acquisition(said.rest)) {
            ++m.acquisitions;
            history_.add(*a);
        }
    } else if (said.word == event::ready) {
        m.session_timeout = std::chrono::milliseconds(to_number(said.rest));
    } else if (said.word == event::uncertain) {
        ++m.uncertain;
    } else if (said.word == event::violation) {
        violations_.push_back(m.name + ": " + said.rest);
        say_(violations_.back());
    } else if (said.word == event::holding) {
        m.held_token = to_number(said.rest);
        m.what = state::holding;
    } else if (said.word == event::body_cancelled) {
        m.body_cancelled = said.rest;
        say_(fmt::format("{}: body cancelled: {}", m.name, said.rest));
    } else if (said.word == event::commit_refused) {
        m.commit_refused = said.rest;
        say_(fmt::format("{}: late commit refused: {}", m.name, said.rest));
    } else if (said.word == event::server_refused) {
        m.server_refused = said.rest;
        say_(fmt::format("{}: and by ZooKeeper, when sent regardless: {}", m.name, said.rest));
    } else if (said.word == event::accepted) {
        m.accepted = "accepted " + said.rest;
        say_(fmt::format("{}: late commit accepted {}", m.name, said.rest));
    } else if (said.word == event::raced) {
        m.raced = to_number(said.rest);
    } else if (said.word == event::note) {
        say_(fmt::format("{}: {}", m.name, said.rest));
    }
}

}  // namespace demo
