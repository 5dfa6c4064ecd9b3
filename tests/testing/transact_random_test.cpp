#include "testing/transact_steps.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

/// Bodies that read and write at random, compared with the same calls on a map. Without other clients a body runs again
/// only for what a run did not know, see unit_record::refusal::no_parent.
namespace transact_random_tests {

using namespace transact_tests;

using tree = std::map<std::string, std::string>;

const std::vector<std::string> all_paths{"/p", "/p/x", "/p/x/y", "/p/z", "/q"};

struct call {
    enum class kind {
        get,
        set,
        create,
        remove
    };
    kind what;
    std::string path, data;
};

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool has_children(const tree& t, const std::string& path) {
    const auto it = t.lower_bound(path + "/");
    return it != t.end() && it->first.find(path + "/") == 0;
}

bool can_exist(const tree& t, const std::string& path) {
    return parent_of(path).empty() || t.contains(parent_of(path));
}

/// Nothing: one of the writes is not possible.
std::optional<tree> after(tree t, const std::vector<call>& calls) {
    for (const call& c : calls) {
        const bool there = t.contains(c.path);
        switch (c.what) {
            case call::kind::get: break;
            case call::kind::set:
                if (!there) return std::nullopt;
                t[c.path] = c.data;
                break;
            case call::kind::create:
                if (there || !can_exist(t, c.path)) return std::nullopt;
                t[c.path] = c.data;
                break;
            case call::kind::remove:
                if (!there || has_children(t, c.path)) return std::nullopt;
                t.erase(c.path);
                break;
        }
    }
    return t;
}

tree tree_of(const fake_ensemble& e) {
    tree t;
    for (const std::string& path : all_paths)
        if (e.exists(path)) t[path] = e.data(path).value();
    return t;
}

class random_calls {
public:
    explicit random_calls(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    std::string path() { return all_paths[below(all_paths.size())]; }
    std::vector<call> body() {
        std::vector<call> calls;
        const std::size_t n = 1 + below(5);
        for (std::size_t i = 0; i < n; ++i)
            calls.push_back({static_cast<call::kind>(below(4)), path(), std::to_string(below(1000))});
        return calls;
    }
    void grow(fake_ensemble& e) {
        for (const std::string& path : all_paths)
            if (below(2) == 0 && can_exist(tree_of(e), path)) e.create(path, std::to_string(below(1000)));
    }
    /// What another client does.
    void disturb(fake_ensemble& e) {
        const std::string at = path();
        const tree t = tree_of(e);
        if (!t.contains(at)) {
            if (can_exist(t, at)) e.create(at, "theirs");
        } else if (below(2) == 0 && !has_children(t, at)) {
            e.remove(at);
        } else {
            e.set(at, "theirs");
        }
    }

private:
    std::mt19937_64 random_;
};

std::string to_text(const tree& t) {
    std::string text;
    for (const auto& [path, data] : t) text += " " + path + "=" + data;
    return text;
}

std::string to_text(const std::vector<call>& calls) {
    const char* const names[] = {"get", "set", "create", "remove"};
    std::string text;
    for (const call& c : calls) text += std::string(" ") + names[static_cast<int>(c.what)] + " " + c.path;
    return text;
}

/// What the gets see if nothing changes but by the calls themselves.
std::string seen_on(const tree& servers, const std::vector<call>& calls) {
    std::map<std::string, std::optional<std::string>> written;
    std::string text;
    for (const call& c : calls) {
        if (c.what == call::kind::remove) written[c.path] = std::nullopt;
        if (c.what == call::kind::set || c.what == call::kind::create) written[c.path] = c.data;
        if (c.what != call::kind::get) continue;
        std::optional<std::string> now;
        if (const auto own = written.find(c.path); own != written.end())
            now = own->second;
        else if (const auto there = servers.find(c.path); there != servers.end())
            now = there->second;
        text += now.value_or("none") + " ";
    }
    return text;
}

asio::awaitable<std::string> carry_out(unit u, call c) {
    std::string text;
    switch (c.what) {
        case call::kind::get: {
            const seen n = co_await u.get(c.path);
            text = (n ? n->data : "none") + " ";
            break;
        }
        case call::kind::set: u.set(c.path, c.data); break;
        case call::kind::create: u.create(c.path, c.data); break;
        case call::kind::remove: u.remove(c.path); break;
    }
    co_return text;
}

void play(std::uint64_t seed, bool disturbed, int cuts_in_percent = 0) {
    const auto one = [&](fake_ensemble& e, client zk) -> asio::awaitable<void> {
        random_calls random(seed);
        random.grow(e);
        const std::vector<call> calls = random.body();
        const std::size_t disturbed_before = disturbed ? random.below(calls.size() + 1) : 1000;
        const tree before = tree_of(e);
        tree at_end;
        int runs = 0;
        const auto body = [&](unit& u) -> asio::awaitable<std::string> {
            ++runs;
            std::string text;
            for (std::size_t i = 0; i <= calls.size(); ++i) {
                if (runs == 1 && i == disturbed_before) random.disturb(e);
                if (i == calls.size()) break;
                const std::string got = co_await carry_out(u, calls[i]);
                text += got;
            }
            at_end = tree_of(e);
            co_return text;
        };
        transact_options how;
        if (cuts_in_percent > 0) how = certain();
        e.lose_connections(cuts_in_percent);
        const outcome o = co_await try_transact(zk, body, how.tries(8));
        e.lose_connections(0);
        const session on = co_await zk.current_session();
        const session patient = on.patient();
        co_await patient.sync();  // connected again: the close ends the session
        INFO("seed " << seed << ":" << to_text(calls) << ", on" << to_text(before) << ", left" << to_text(tree_of(e))
                     << ", runs " << runs << ", ended with " << o.what);
        const std::optional<tree> expected = after(at_end, calls);
        CHECK(runs <= (disturbed ? 4 : 3));
        CHECK_FALSE(o.unknown);
        CHECK(o.done.has_value() == expected.has_value());
        CHECK(tree_of(e) == expected.value_or(at_end));
        if (o.done) CHECK(*o.done == seen_on(at_end, calls));
    };
    with_ensemble(one, seed);
}

TEST_CASE("transact: random bodies do what the same calls do one by one") {
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) play(seed, false);
}

TEST_CASE("transact: random bodies beside another client are of one moment") {
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) play(seed, true);
}

TEST_CASE("transact: random bodies over connections that break are applied once") {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) play(seed, seed % 2 == 0, 10);
}

}  // namespace transact_random_tests
