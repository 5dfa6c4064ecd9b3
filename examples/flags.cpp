// Feature flags, and publish/subscribe, on nodes that are followed: flags 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/cache/streams.hpp>
#include <zkasio/config/config_value.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>

#include <functional>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

// [flags]
// The names of what is switched on, one a line, in one node: so that several are switched together.
class feature_flags {
    using names = std::set<std::string>;
    using state = zkasio::config_snapshot<names>;

public:
    explicit feature_flags(const zkasio::client& zk) : on_(zk, "/flags-example/on", format(), none()) {}

    asio::awaitable<void> ready() const { return on_.ready(); }
    bool enabled(const std::string& name) const { return on_.value()->contains(name); }  // on any thread
    // Other flags that another client switches at the same moment are not overwritten.
    asio::awaitable<state> enable(std::string name) const { return on_.update(switched(std::move(name), true)); }
    asio::awaitable<state> disable(std::string name) const { return on_.update(switched(std::move(name), false)); }
    zkasio::config_changes<names> changes() const { return on_.changes(); }

private:
    static names parse(std::string_view text) {
        std::istringstream lines{std::string(text)};
        names all;
        for (std::string line; std::getline(lines, line);) all.insert(line);
        return all;
    }
    static std::string print(const names& all) {
        std::string text;
        for (const std::string& name : all) text += name + '\n';
        return text;
    }
    static zkasio::config_format<names> format() { return zkasio::config_format<names>(parse, print); }
    static zkasio::config_options<names> none() { return zkasio::config_options<names>().default_value({}); }

    static std::function<names(names)> switched(std::string name, bool on) {
        return [name = std::move(name), on](names all) {
            on ? (void)all.insert(name) : (void)all.erase(name);
            return all;
        };
    }

    zkasio::config_value<names> on_;
};
// [/flags]

// [subscriber]
// The newest message counts: a subscriber that is slow, or was cut off, gets that, and not those before. For work that
// must not be lost, a queue is the right thing.
asio::awaitable<void> subscriber(zkasio::client zk, std::string name) {
    const zkasio::value_stream news = zkasio::watch_value(zk, "/flags-example/news");
    for (std::string text; text != "good night";) {
        const auto message = co_await news.next();
        text = message ? message->data : "nothing yet";
        std::cout << name << " hears: " << text << "\n";
    }
}
// [/subscriber]

asio::awaitable<void> example(zkasio::client zk) {
    co_await zk.remove_recursive("/flags-example");
    const feature_flags flags(zk), elsewhere(zk);
    co_await flags.ready();
    expect(!flags.enabled("dark mode"), "all is off at first");
    const auto changes = flags.changes();
    co_await elsewhere.enable("dark mode");
    co_await elsewhere.enable("beta");
    while (!flags.enabled("beta")) co_await changes.next();
    expect(flags.enabled("dark mode"), "both are on");
    co_await flags.disable("beta");

    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, subscriber(zk, "alice"), rethrow);
    asio::co_spawn(executor, subscriber(zk, "bob"), rethrow);
    for (const char* text : {"hello", "good night"}) co_await zk.create_or_set("/flags-example/news", text);
}

void all(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, example({io, zkasio::client_options(servers)}), rethrow);
    io.run();  // until everybody has heard the last message
}

int main(int argc, char** argv) { return run_example(argc, argv, all); }
