// Feeds that have one recursive watch for all nodes, and whoever waits at its very node.
#include "support/texts.hpp"
#include "unit/support/fake_server.hpp"
#include "unit/support/request_steps.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test::request_one_watch_tests {

using namespace request_steps;

namespace {

class listener final : public node_feed_listener {
public:
    explicit listener(bool by_one) : by_one_(by_one) {}
    texts told;

private:
    bool wants_one_watch() const override { return by_one_; }
    void connected(bool by_one) override { told.push_back(by_one ? "connected, one watch" : "connected"); }
    void disconnected() override { told.push_back("disconnected"); }
    void closed(std::error_code) override {}
    void answered(node_read, const std::string& path, std::error_code code, node_answer a) override {
        told.push_back(path + (code ? ": " + code.message() : " has " + a.data + std::to_string(a.children.size())));
    }
    void changed(node_change what, const std::string& path, std::int64_t) override {
        told.push_back(path + (what == node_change::removed            ? " is removed"
                               : what == node_change::children_changed ? " has other children"
                                                                       : " has changed"));
    }
    bool watches(node_read, const std::string&) const override { return false; }
    void for_each_watch(const std::function<void(node_read, const std::string&)>&) const override {}

    const bool by_one_;
};

struct bench : parts_bench {
    bench() {
        session->session_id = 1;
        connect();
    }
    struct feed {
        std::shared_ptr<listener> heard;
        feed_ptr state = std::make_shared<feed_state>();
        texts take() const { return std::exchange(heard->told, {}); }
    };
    feed add(std::string root = "/r", bool by_one = true, bool recursive = true) {
        feed f{std::make_shared<listener>(by_one)};
        f.state->wants_recursive = recursive;
        f.state->root = std::move(root);
        f.state->listener = f.heard;
        f.state->wants_one_watch = by_one;
        requests.add_feed(f.state);
        turns();
        return f;
    }
    void link_up() {
        connect();
        requests.feeds_connected();
        turns();
    }
    void link_down() {
        disconnect();
        requests.feeds_disconnected();
        turns();
    }
    /// Calls what was to be called later, and sends.
    void turns() {
        do {
            for (const auto& call : std::exchange(later_calls, {})) call();
            requests.flush();
        } while (!later_calls.empty());
    }
    /// The requests that were sent since the last call.
    std::vector<std::pair<op_id, request>> take_sent() { return std::exchange(backend.submitted, {}); }
    template <class Request>
    std::pair<op_id, Request> take_one() {
        const auto sent = take_sent();
        REQUIRE(sent.size() == 1);
        REQUIRE(std::holds_alternative<Request>(sent[0].second));
        return {sent[0].first, std::get<Request>(sent[0].second)};
    }
    void answer(op_id id, reply r = {}) {
        requests.answered(id, std::move(r));
        turns();
    }
    /// A feed of "/r" that has its watch.
    feed watching() {
        requests.feeds_connected();
        feed f = add();
        answer(take_one<add_watch_request>().first);
        CHECK(f.take() == texts{"connected, one watch"});
        return f;
    }
    /// Somebody waits for a change of the node. Returns whether the read that was sent sets a watch.
    bool wait_at(const std::string& path, const watch_ptr& w, outcome& o) {
        requests.submit(requests.next_id(), getting(path, w), o.to());
        turns();
        const auto [id, read] = take_one<get_request>();
        answer(id);
        return read.watch;
    }
};

}  // namespace

TEST_CASE("one watch: a feed that wants it is told of the connection when it has it", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed f = b.add();
    CHECK(f.take().empty());
    const auto [id, asked] = b.take_one<add_watch_request>();
    CHECK(asked.path == "/r");
    CHECK(asked.recursive);
    SECTION("it stands") {
        b.answer(id);
        CHECK(f.take() == texts{"connected, one watch"});
        b.requests.added_watch_event(node_event::created, "/r/a");
        b.requests.added_watch_event(node_event::data_changed, "/other");
        CHECK(f.take() == texts{"/r/a has changed"});
        b.requests.node_event(node_event::data_changed, "/r/a");  // the same change, by somebody's watch of that node
        CHECK(f.take().empty());
    }
    SECTION("the server has none") {
        b.answer(id, refusal(zk_errc::unimplemented));
        CHECK(f.take() == texts{"connected"});
        b.requests.read_for(f.state, node_read::data, "/r");
        b.turns();
        CHECK(b.take_one<get_request>().second.watch);
        b.requests.node_event(node_event::data_changed, "/r");
        CHECK(f.take() == texts{"/r has changed"});
    }
    SECTION("a server that has too much to do is asked again") {
        b.answer(id, refusal(zk_errc::throttled));
        CHECK(f.take().empty());
        b.link_down();
        b.link_up();
        b.answer(b.take_one<add_watch_request>().first);
        CHECK(f.take() == texts{"connected, one watch"});
    }
    SECTION("the connection is lost before") {
        b.requests.answered(id, lost());
        b.link_down();
        CHECK(f.take().empty());
        b.link_up();
        b.answer(b.take_one<add_watch_request>().first);
        CHECK(f.take() == texts{"connected, one watch"});
    }
    SECTION("the session ends before") {
        b.requests.answered(id, refusal(errc::session_expired));
        b.turns();
        CHECK(f.take().empty());
    }
}

TEST_CASE("one watch: each connection has one of its own", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.link_down();
    CHECK(f.take() == texts{"disconnected"});
    b.link_up();
    const op_id id = b.take_one<add_watch_request>().first;
    CHECK(f.take().empty());
    b.answer(id, refusal(zk_errc::unimplemented));  // an older server
    CHECK(f.take() == texts{"connected"});
}

TEST_CASE("one watch: servers that hang up at the question are asked twice, and no more", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed f = b.add();
    b.take_one<add_watch_request>();
    b.link_down();
    b.link_up();
    const op_id second = b.take_one<add_watch_request>().first;
    CHECK(f.take().empty());
    const bool answers = GENERATE(false, true);
    if (answers) b.answer(second);
    f.take();
    b.link_down();
    b.link_up();
    if (answers) {
        b.take_one<add_watch_request>();
    } else {
        CHECK(b.take_sent().empty());
        CHECK(f.take() == texts{"connected"});
    }
}

TEST_CASE("one watch: feeds of one root share it", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed first = b.add(), second = b.add();
    const bench::feed other = b.add("/r", false), elsewhere = b.add("/r/below");
    CHECK(other.take() == texts{"connected"});
    const auto asked = b.take_sent();
    REQUIRE(asked.size() == 2);
    b.answer(asked[0].first);
    CHECK(first.take() == texts{"connected, one watch"});
    CHECK(second.take() == texts{"connected, one watch"});
    CHECK(elsewhere.take().empty());
    const bench::feed third = b.add();
    CHECK(third.take() == texts{"connected, one watch"});
    b.requests.remove_feed(*first.state);
    b.requests.remove_feed(*third.state);
    b.turns();
    CHECK(b.take_sent().empty());
    b.requests.remove_feed(*second.state);
    b.turns();
    CHECK(b.take_one<remove_added_watch_request>().second.path == "/r");
}

// Before 3.9, servers tell nothing of the children any more.
TEST_CASE("one watch: who waits for children of its node, when it is set, has a watch for them again",
          "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const watch_ptr children = watch_by(children_request{"/r", true});
    outcome o;
    command c(children_request{"/r", true});
    c.watch = children;
    b.requests.submit(b.requests.next_id(), std::move(c), o.to());
    b.turns();
    reply seen;
    seen.stat.pzxid = 5;
    b.answer(b.take_one<children_request>().first, seen);
    const bench::feed f = b.add();
    b.answer(b.take_one<add_watch_request>().first);
    const auto [id, again] = b.take_one<children_request>();
    CHECK(again.watch);
    const bool has_changed = GENERATE(false, true);
    if (has_changed) seen.stat.pzxid = 6;
    b.answer(id, seen);
    CHECK(children->fired->done == has_changed);
}

TEST_CASE("one watch: its removal is sent although the backend cannot take it at first", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.requests.remove_feed(*f.state);
    b.backend.refuses = std::make_error_code(std::errc::resource_unavailable_try_again);
    b.turns();
    CHECK(b.take_sent().empty());
    b.backend.refuses = {};
    b.requests.writable();
    b.take_one<remove_added_watch_request>();
    const bench::feed next = b.add();
    b.take_one<add_watch_request>();
}

TEST_CASE("one watch: it goes with the last one who waits at its node, also if that read fails", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    outcome o;
    b.requests.submit(b.requests.next_id(), getting("/r", std::make_shared<watch_state>()), o.to());
    b.turns();
    const op_id read = b.take_one<get_request>().first;
    b.requests.remove_feed(*f.state);
    b.turns();
    CHECK(b.take_sent().empty());
    b.answer(read, refusal(zk_errc::no_node));
    b.take_one<remove_added_watch_request>();
}

TEST_CASE("one watch: for a feed of the node alone, it is not recursive, and tells who waits for children",
          "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed f = b.add("/r", true, false);
    const auto [id, asked] = b.take_one<add_watch_request>();
    CHECK_FALSE(asked.recursive);
    b.answer(id);
    CHECK(f.take() == texts{"connected, one watch"});
    const watch_ptr children = watch_by(children_request{"/r", true});
    outcome o;
    command c;
    c.what = children_request{"/r", true};
    c.watch = children;
    b.requests.submit(b.requests.next_id(), std::move(c), o.to());
    b.turns();
    const auto [read, sent] = b.take_one<children_request>();
    CHECK_FALSE(sent.watch);  // before 3.9, it would take the place
    b.answer(read);
    b.requests.added_watch_event(node_event::created, "/r/a");  // told by a recursive watch elsewhere
    CHECK(f.take().empty());
    b.requests.added_watch_event(node_event::children_changed, "/r");
    CHECK(f.take() == texts{"/r has other children"});
    CHECK(children->fired->done);
    b.requests.remove_feed(*f.state);
    b.turns();
    CHECK(b.take_one<remove_added_watch_request>().second.path == "/r");
}

TEST_CASE("one watch: it becomes recursive when a feed comes that wants all below", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed narrow = b.add("/r", true, false);
    const op_id first = b.take_one<add_watch_request>().first;
    const bool first_is_answered = GENERATE(true, false);
    if (first_is_answered) b.answer(first);
    narrow.take();
    const bench::feed wide = b.add();
    const auto [second, asked] = b.take_one<add_watch_request>();
    CHECK(asked.recursive);
    const bench::feed third = b.add();
    CHECK(b.take_sent().empty());
    SECTION("it stands") {
        if (!first_is_answered) {
            b.answer(first);
            CHECK(narrow.take().empty());  // the last answer decides
        }
        CHECK(wide.take().empty());
        b.answer(second);
        CHECK(wide.take() == texts{"connected, one watch"});
        CHECK(third.take() == texts{"connected, one watch"});
        // Something may have been missed while the one took the place of the other.
        CHECK(narrow.take() == (first_is_answered ? texts{"/r has other children"} : texts{"connected, one watch"}));
        b.requests.added_watch_event(node_event::created, "/r/a");
        CHECK(narrow.take() == texts{"/r has other children"});
        b.requests.added_watch_event(node_event::data_changed, "/r/a");
        b.requests.added_watch_event(node_event::created, "/r/a/b");
        b.requests.added_watch_event(node_event::children_changed, "/r");  // by the watch of a read
        CHECK(narrow.take().empty());
        b.requests.added_watch_event(node_event::data_changed, "/r");
        CHECK(narrow.take() == texts{"/r has changed"});
    }
    SECTION("all leave before the answer: it is removed after it") {
        for (const bench::feed* f : {&narrow, &wide, &third}) b.requests.remove_feed(*f->state);
        b.turns();
        if (!first_is_answered) b.answer(first);
        CHECK(b.take_sent().empty());
        b.answer(second);
        b.take_one<remove_added_watch_request>();
    }
}

TEST_CASE("one watch: a batch is bounded by its paths, and has few listings", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    f.state->most_in_batch = 128;
    const bool listings = GENERATE(false, true);
    for (int i = 0; i < 128; ++i)
        b.requests.read_for(f.state, listings ? node_read::children : node_read::data,
                            "/r/" + (listings ? std::to_string(i) : std::string(8000, 'x')));
    b.turns();
    for (const auto& [id, what] : b.take_sent())
        CHECK(std::get<multi_read_request>(what).reads.size() <= (listings ? 16U : 8U));
}

TEST_CASE("one watch: a batch that was lost with its connection may have been too large", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.requests.read_for(f.state, node_read::data, "/r/a");
    b.requests.read_for(f.state, node_read::data, "/r/b");
    b.turns();
    b.take_sent();
    b.link_down();
    CHECK(f.state->most_in_batch == 8);
}

TEST_CASE("one watch: its removal is given up if somebody needs it by then", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.requests.remove_feed(*f.state);
    SECTION("another feed") {
        const bench::feed next = b.add();
        CHECK(next.take() == texts{"connected, one watch"});
        CHECK(b.take_sent().empty());
        b.requests.remove_feed(*next.state);
        b.turns();
        b.take_one<remove_added_watch_request>();
    }
    SECTION("a feed that comes when it was sent has one of its own") {
        b.turns();
        b.take_one<remove_added_watch_request>();
        const bench::feed next = b.add();
        b.answer(b.take_one<add_watch_request>().first);
        CHECK(next.take() == texts{"connected, one watch"});
    }
    SECTION("the connection is lost before") {
        b.link_down();
        b.link_up();
        CHECK(b.take_sent().empty());
    }
}

TEST_CASE("one watch: a feed that goes before it has it leaves nothing", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    {
        const bench::feed f = b.add();
        b.requests.remove_feed(*f.state);
    }
    b.answer(b.take_one<add_watch_request>().first);
    b.take_one<remove_added_watch_request>();
}

// ZOOKEEPER-4466: at the very node of a recursive watch, another one would take its place.
TEST_CASE("one watch: whoever waits at its very node sets no other one, and is told by it", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching(), stream = b.add("/r", false);
    stream.take();
    outcome o, p;
    const watch_ptr at_root = std::make_shared<watch_state>(), below = std::make_shared<watch_state>();
    CHECK_FALSE(b.wait_at("/r", at_root, o));
    CHECK(b.wait_at("/r/a", below, p));
    SECTION("of data") {
        b.requests.added_watch_event(node_event::data_changed, "/r");
        CHECK(at_root->fired->done);
        CHECK(at_root->event == node_event::data_changed);
        CHECK(f.take() == texts{"/r has changed"});
        CHECK(stream.take() == texts{"/r has changed"});
        b.requests.added_watch_event(node_event::data_changed, "/r/a");
        CHECK_FALSE(below->fired->done);  // it has a watch of its own
        b.requests.node_event(node_event::data_changed, "/r/a");
        CHECK(below->fired->done);
    }
    SECTION("of children: they have a watch of their own") {
        outcome q;
        const watch_ptr children = watch_by(children_request{"/r", true});
        command c(children_request{"/r", true});
        c.watch = children;
        b.requests.submit(b.requests.next_id(), std::move(c), q.to());
        b.turns();
        const auto [id, read] = b.take_one<children_request>();
        CHECK(read.watch);
        b.answer(id);
        b.requests.added_watch_event(node_event::created, "/r/x");
        CHECK_FALSE(children->fired->done);
        b.requests.node_event(node_event::children_changed, "/r");
        CHECK(children->fired->done);
        CHECK_FALSE(at_root->fired->done);
        CHECK(f.take() == texts{"/r/x has changed"});
        CHECK(stream.take() == texts{"/r has other children"});
    }
    SECTION("it stays for their sake, until they are told") {
        b.requests.remove_feed(*f.state);
        b.requests.remove_feed(*stream.state);
        b.turns();
        CHECK(b.take_sent().empty());
        b.requests.added_watch_event(node_event::removed, "/r");
        CHECK(at_root->fired->done);
        b.turns();
        b.take_one<remove_added_watch_request>();
    }
    SECTION("it stays for their sake, until they leave") {
        b.requests.remove_feed(*f.state);
        b.requests.remove_feed(*stream.state);
        b.turns();
        b.requests.leave_watch(below);
        b.turns();
        CHECK(b.take_one<remove_watch_request>().second.path == "/r/a");
        b.requests.leave_watch(at_root);
        b.turns();
        b.take_one<remove_added_watch_request>();
    }
    SECTION("they leave: no removal would spare it") {
        b.requests.leave_watch(at_root);
        b.requests.leave_watch(below);
        b.turns();
        CHECK(b.take_one<remove_watch_request>().second.path == "/r/a");
    }
    SECTION("on a connection without it they have one") {
        b.link_down();
        b.link_up();
        auto sent = b.take_sent();
        REQUIRE(sent.size() == 1);  // their reads come with ask_questions()
        b.answer(sent[0].first, refusal(zk_errc::unimplemented));
        b.requests.ask_questions();
        b.turns();
        sent = b.take_sent();
        REQUIRE(sent.size() == 2);
        for (const auto& [id, read] : sent) CHECK(std::get<exists_request>(read).watch);
    }
}

TEST_CASE("one watch: a read or a removal that was sent behind it took its place: it is set once more",
          "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    outcome o;
    const watch_ptr at_root = std::make_shared<watch_state>();
    const bool removes = GENERATE(false, true);
    if (removes) CHECK(b.wait_at("/r", at_root, o));
    const bench::feed f = b.add();
    const op_id asked = b.take_one<add_watch_request>().first;
    if (removes) {
        b.requests.leave_watch(at_root);
        b.turns();
        b.take_one<remove_watch_request>();
    } else {
        b.requests.submit(b.requests.next_id(), getting("/r", at_root), o.to());
        b.turns();
        CHECK(b.take_one<get_request>().second.watch);
    }
    b.answer(asked);
    CHECK(f.take().empty());
    b.answer(b.take_one<add_watch_request>().first);
    CHECK(f.take() == texts{"connected, one watch"});
}

TEST_CASE("one watch: one that was replaced, and that nobody wants any more, is removed and not set once more",
          "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    outcome o;
    const watch_ptr at_root = std::make_shared<watch_state>();
    CHECK(b.wait_at("/r", at_root, o));
    const bench::feed f = b.add();
    const op_id asked = b.take_one<add_watch_request>().first;
    b.requests.leave_watch(at_root);
    b.turns();
    b.take_one<remove_watch_request>();
    b.requests.remove_feed(*f.state);
    b.answer(asked);
    b.take_one<remove_added_watch_request>();
}

TEST_CASE("one watch: where others read its node all the time, the feed does without it", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    const bench::feed f = b.add();
    std::vector<watch_ptr> waiting;
    const auto all_leave = [&] {
        for (const watch_ptr& w : waiting) b.requests.leave_watch(w);
        b.turns();
    };
    outcome o;
    int asked = 0;
    for (; f.state->up == false && asked < 100; ++asked) {
        const auto sent = b.take_sent();
        REQUIRE(std::holds_alternative<add_watch_request>(sent.front().second));
        waiting.push_back(std::make_shared<watch_state>());
        b.requests.submit(b.requests.next_id(), getting("/r", waiting.back()), o.to());
        b.turns();
        b.answer(b.take_sent().front().first);
        b.answer(sent.front().first);
    }
    CHECK(asked == 10);
    CHECK(f.take() == texts{"connected"});

    SECTION("servers from 3.9 on may have it: it goes with the last one who waits there, by one request") {
        b.requests.remove_feed(*f.state);
        b.turns();
        CHECK(b.take_sent().empty());
        all_leave();
        CHECK(b.take_one<remove_added_watch_request>().second.path == "/r");
        CHECK(b.wait_at("/r", std::make_shared<watch_state>(), o));
    }
    SECTION("not if somebody else has come by the time it would be sent: then with him") {
        b.requests.remove_feed(*f.state);
        const watch_ptr later = std::make_shared<watch_state>();
        b.requests.submit(b.requests.next_id(), getting("/r", later), o.to());
        all_leave();
        b.answer(b.take_one<get_request>().first);
        b.requests.leave_watch(later);
        b.turns();
        b.take_one<remove_added_watch_request>();
    }
}

TEST_CASE("one watch: a removal that waits to be sent is not, when it stands by then", "[requests][feed]") {
    bench b;
    b.requests.feeds_connected();
    outcome o;
    const watch_ptr at_root = std::make_shared<watch_state>();
    CHECK(b.wait_at("/r", at_root, o));
    const bench::feed f = b.add();
    const op_id asked = b.take_one<add_watch_request>().first;
    b.requests.leave_watch(at_root);
    b.requests.answered(asked, {});
    b.turns();
    CHECK(b.take_sent().empty());
    CHECK(b.backend.forgotten.contains({"/r", watch_kind::data}));
    CHECK(f.take() == texts{"connected, one watch"});
}

TEST_CASE("one watch: the reads of a turn travel together, and are answered one by one", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.requests.read_for(f.state, node_read::data, "/r/a");
    b.requests.read_for(f.state, node_read::children, "/r");
    b.requests.read_for(f.state, node_read::data, "/r/b");
    CHECK(b.take_sent().empty());
    b.turns();
    const auto [id, all] = b.take_one<multi_read_request>();
    REQUIRE(all.reads.size() == 3);
    CHECK(std::get<get_request>(all.reads[0]).path == "/r/a");
    CHECK(std::get<children_request>(all.reads[1]).path == "/r");
    SECTION("by the server") {
        reply r;
        r.results.resize(3);
        r.results[0].data = "x";
        r.results[1].children = {"a", "b"};
        r.results[2].code = zk_errc::no_node;
        b.answer(id, std::move(r));
        CHECK(f.take() == texts{"/r/a has x0", "/r has 2", "/r/b: no such node"});
    }
    SECTION("all of them: not now") {
        b.answer(id, refusal(zk_errc::throttled));
        CHECK(f.take().size() == 3);
    }
    SECTION("by a server that knows no such request") {
        b.answer(id, refusal(zk_errc::unimplemented));
        CHECK(f.take().empty());
        const auto alone = b.take_sent();
        REQUIRE(alone.size() == 3);
        CHECK_FALSE(std::get<get_request>(alone[0].second).watch);
        CHECK_FALSE(std::get<children_request>(alone[1].second).watch);
        b.requests.read_for(f.state, node_read::data, "/r/c");
        b.requests.read_for(f.state, node_read::data, "/r/d");
        b.turns();
        CHECK(b.take_sent().size() == 2);
    }
    SECTION("the connection is lost") {
        b.requests.answered(id, lost());
        b.requests.read_for(f.state, node_read::data, "/r/c");
        b.requests.read_for(f.state, node_read::data, "/r/d");
        b.link_down();
        CHECK(f.take() == texts{"disconnected"});
        b.link_up();
        b.take_one<add_watch_request>();
    }
    SECTION("the feed is gone") {
        b.requests.read_for(f.state, node_read::data, "/r/c");
        b.requests.read_for(f.state, node_read::data, "/r/d");
        b.requests.remove_feed(*f.state);
        b.turns();
        CHECK(std::holds_alternative<remove_added_watch_request>(b.take_sent().back().second));
        b.answer(id);
        CHECK(f.take().empty());
    }
}

TEST_CASE("one watch: a read that travels alone is an ordinary one, and so is one of a stat", "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    b.requests.read_for(f.state, node_read::children, "/r");
    b.turns();
    CHECK_FALSE(b.take_one<children_request>().second.watch);
    b.requests.read_for(f.state, node_read::stat, "/r/a");
    b.requests.read_for(f.state, node_read::stat, "/r/b");
    b.turns();
    const auto sent = b.take_sent();
    REQUIRE(sent.size() == 2);
    CHECK_FALSE(std::get<exists_request>(sent[0].second).watch);
}

TEST_CASE("one watch: while batches are under way, the next one waits until it is full or one is answered",
          "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    const auto read = [&](int n) {
        for (int i = 0; i < n; ++i) b.requests.read_for(f.state, node_read::data, "/r/" + std::to_string(i));
        b.turns();
    };
    read(2);
    read(3);
    auto sent = b.take_sent();
    REQUIRE(sent.size() == 2);
    read(4);
    CHECK(b.take_sent().empty());
    read(20);
    CHECK(b.take_sent().empty());
    SECTION("answered") {
        reply r;
        r.results.resize(2);
        b.answer(sent[0].first, std::move(r));
        CHECK(b.take_one<multi_read_request>().second.reads.size() == 16);
        b.answer(sent[1].first, refusal(zk_errc::throttled));
        CHECK(b.take_one<multi_read_request>().second.reads.size() == 8);
    }
    SECTION("by a server that knows no such request") {
        for (const auto& [id, what] : sent) b.answer(id, refusal(zk_errc::unimplemented));
        CHECK(b.take_sent().size() == 2 + 3 + 24);
    }
    SECTION("another connection") {
        b.link_down();
        b.link_up();
        b.answer(b.take_one<add_watch_request>().first);
        read(2);
        CHECK(b.take_sent().size() == 1);
    }
}

TEST_CASE("one watch: a batch is bounded, in number and in bytes", "[requests][feed]") {
    feed_state f;
    for (const std::size_t most : {16U, 32U, 64U, 128U, 256U, 256U}) {
        CHECK(f.most_in_batch == most);
        f.learn_size(100 * most, most);
    }
    f.learn_size(256 * 10'000, 256);
    CHECK(f.most_in_batch == 26);  // 256 kB
    f.learn_size(26'000'000, 26);
    CHECK(f.most_in_batch == 1);
    f.learn_size(100, 1);
    CHECK(f.most_in_batch == 2);
}

TEST_CASE("one watch: nodes that were too large for a batch are read together again when they are small",
          "[requests][feed]") {
    bench b;
    const bench::feed f = b.watching();
    f.state->most_in_batch = 1;
    for (const std::size_t bytes : {1'000'000U, 100U}) {
        b.requests.read_for(f.state, node_read::data, "/r/a");
        reply r;
        r.data.assign(bytes, 'x');
        b.turns();
        b.answer(b.take_one<get_request>().first, std::move(r));
        CHECK(f.state->most_in_batch == (bytes > 100 ? 1 : 2));
    }
    b.requests.read_for(f.state, node_read::data, "/r/a");
    b.turns();
    b.answer(b.take_one<get_request>().first);
    CHECK(f.state->most_in_batch == 2);  // a single read says nothing of batches
}

}  // namespace zkasio::test::request_one_watch_tests
