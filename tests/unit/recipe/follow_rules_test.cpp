#include "support/catch.hpp"

#include <zkasio/error.hpp>
#include <zkasio/recipe/detail/follow_rules.hpp>

#include <optional>

using namespace zkasio;
using namespace zkasio::detail;

namespace {

node_mark state(std::int64_t czxid, std::int64_t zxid) {
    node_mark mark;
    mark.czxid = czxid;
    mark.zxid = zxid;
    return mark;
}

node_mark state(std::error_code code) {
    node_mark mark;
    mark.code = code;
    return mark;
}

// Connected, and somebody wants to know anything.
follow_rules asked(node_read what = node_read::data) {
    follow_rules rules(what);
    rules.connected();
    rules.want(std::nullopt);
    return rules;
}

// The same, and was told this.
follow_rules told(node_read what, const node_mark& mark) {
    follow_rules rules = asked(what);
    CHECK(rules.next_read() == what);
    CHECK(rules.answered(what, mark));
    return rules;
}

}  // namespace

TEST_CASE("follow_rules: it reads when it is asked and connected, once") {
    follow_rules rules(node_read::data);
    CHECK_FALSE(rules.next_read());
    rules.connected();
    CHECK_FALSE(rules.next_read());
    rules.want(std::nullopt);
    CHECK(rules.next_read() == node_read::data);
    CHECK_FALSE(rules.next_read());
    CHECK(rules.watches(node_read::stat));
    CHECK_FALSE(rules.watches(node_read::children));
    CHECK(rules.answered(node_read::data, state(1, 1)));
    CHECK(rules.watches(node_read::data));
    CHECK_FALSE(rules.next_read());
}

TEST_CASE("follow_rules: who knows what stands waits until the watch fires") {
    follow_rules rules = told(node_read::data, state(1, 1));
    rules.want(state(1, 1));
    CHECK_FALSE(rules.next_read());
    rules.changed(node_change::children_changed);  // of no interest
    CHECK_FALSE(rules.next_read());
    rules.changed(node_change::data_changed);
    CHECK_FALSE(rules.watches(node_read::data));
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(1, 2)));
}

TEST_CASE("follow_rules: changes that nobody asks about are not read") {
    follow_rules rules = told(node_read::data, state(1, 1));
    rules.changed(node_change::data_changed);
    CHECK_FALSE(rules.next_read());
    rules.want(state(1, 1));
    CHECK(rules.next_read() == node_read::data);
}

TEST_CASE("follow_rules: what was told to somebody who did not hear it is read again") {
    follow_rules rules = told(node_read::data, state(1, 2));
    rules.want(state(1, 1));
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(1, 2)));
}

TEST_CASE("follow_rules: the same again is no news, another node of the same version is") {
    follow_rules rules = told(node_read::data, state(1, 1));
    rules.want(state(1, 1));
    rules.disconnected();
    CHECK_FALSE(rules.watches(node_read::data));
    CHECK_FALSE(rules.next_read());
    rules.connected();
    CHECK(rules.next_read() == node_read::data);
    CHECK_FALSE(rules.answered(node_read::data, state(1, 1)));
    rules.disconnected();
    rules.connected();
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(5, 5)));
}

TEST_CASE("follow_rules: a change while a read is under way is told and read again") {
    follow_rules rules = told(node_read::data, state(1, 1));
    rules.changed(node_change::data_changed);
    rules.want(state(1, 1));
    CHECK(rules.next_read() == node_read::data);
    rules.changed(node_change::data_changed);
    CHECK(rules.answered(node_read::data, state(1, 2)));
    rules.want(state(1, 2));
    CHECK(rules.next_read() == node_read::data);
    CHECK_FALSE(rules.answered(node_read::data, state(1, 2)));
    CHECK_FALSE(rules.next_read());
}

TEST_CASE("follow_rules: a missing node is watched for") {
    for (const node_read what : {node_read::data, node_read::children}) {
        follow_rules rules = asked(what);
        CHECK(rules.next_read() == what);
        CHECK_FALSE(rules.answered(what, state(zk_errc::no_node)));
        CHECK_FALSE(rules.watches(what));
        CHECK(rules.next_read() == node_read::stat);
        CHECK(rules.answered(node_read::stat, state(zk_errc::no_node)));
        CHECK(rules.watches(node_read::stat));
        rules.want(state(zk_errc::no_node));
        CHECK_FALSE(rules.next_read());
        rules.changed(node_change::created);
        CHECK_FALSE(rules.watches(node_read::stat));
        CHECK(rules.next_read() == what);
        CHECK(rules.answered(what, state(1, 1)));
        CHECK_FALSE(rules.take_left());
    }
}

TEST_CASE("follow_rules: a node that comes between the two reads of a missing one") {
    for (const node_read what : {node_read::data, node_read::children}) {
        follow_rules rules = asked(what);
        CHECK(rules.next_read() == what);
        CHECK_FALSE(rules.answered(what, state(zk_errc::no_node)));
        CHECK(rules.next_read() == node_read::stat);
        CHECK_FALSE(rules.answered(node_read::stat, state(1, 1)));
        // A watch of the data is of no use to who wants to know of the children.
        CHECK(rules.take_left() == (what == node_read::children));
        CHECK(rules.watches(node_read::stat) == (what == node_read::data));
        CHECK(rules.next_read() == what);
        CHECK(rules.answered(what, state(1, 1)));
    }
}

TEST_CASE("follow_rules: a refusal is told once and asked for again after pauses") {
    follow_rules rules = asked();
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(zk_errc::no_auth)));
    CHECK(rules.put_off());
    CHECK_FALSE(rules.watches(node_read::data));
    rules.want(state(zk_errc::no_auth));
    CHECK_FALSE(rules.next_read());
    rules.resume();
    CHECK(rules.next_read() == node_read::data);
    CHECK_FALSE(rules.answered(node_read::data, state(zk_errc::no_auth)));
    CHECK(rules.put_off());
    rules.resume();
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(1, 1)));
}

TEST_CASE("follow_rules: what may succeed later is no state") {
    follow_rules rules = asked();
    CHECK(rules.next_read() == node_read::data);
    CHECK_FALSE(rules.answered(node_read::data, state(zk_errc::operation_timeout)));
    CHECK(rules.put_off());
    CHECK_FALSE(rules.next_read());
    rules.resume();
    CHECK(rules.next_read() == node_read::data);
}

TEST_CASE("follow_rules: who does not want to know any more is not read for") {
    follow_rules rules = told(node_read::data, state(1, 1));
    rules.want(state(1, 1));
    rules.changed(node_change::data_changed);
    rules.want_nothing();
    CHECK_FALSE(rules.next_read());
    rules.disconnected();
    rules.connected();
    CHECK_FALSE(rules.next_read());
    // Also while it is read; the next who wants to know is told.
    rules.want(state(1, 1));
    CHECK(rules.next_read() == node_read::data);
    rules.want_nothing();
    CHECK_FALSE(rules.answered(node_read::data, state(1, 2)));
    CHECK_FALSE(rules.next_read());
    rules.want(state(1, 1));
    CHECK(rules.next_read() == node_read::data);
    CHECK(rules.answered(node_read::data, state(1, 2)));
}

TEST_CASE("follow_rules: of a missing node the read that has failed is sent again and not the one before") {
    for (const node_read what : {node_read::data, node_read::children}) {
        follow_rules rules = asked(what);
        CHECK(rules.next_read() == what);
        CHECK_FALSE(rules.answered(what, state(zk_errc::no_node)));
        for (int failures = 0; failures < 3; ++failures) {
            CHECK(rules.next_read() == node_read::stat);
            CHECK_FALSE(rules.answered(node_read::stat, state(zk_errc::operation_timeout)));
            CHECK(rules.put_off());  // and nothing has succeeded in between: the pauses grow
            rules.resume();
        }
        CHECK(rules.next_read() == node_read::stat);
        CHECK(rules.answered(node_read::stat, state(zk_errc::no_node)));
    }
}

TEST_CASE("follow_rules: marks of data and of children") {
    node_answer answer;
    answer.stat.czxid = 1;
    answer.stat.mzxid = 2;
    answer.stat.pzxid = 3;
    CHECK(mark_of(node_read::data, {}, answer) == state(1, 2));
    CHECK(mark_of(node_read::children, {}, answer) == state(1, 3));
    answer.children = {"a", "b"};
    const node_mark both = mark_of(node_read::children, {}, answer);
    answer.children = {"b", "a"};
    CHECK(mark_of(node_read::children, {}, answer) == both);
    answer.children = {"b"};
    CHECK(mark_of(node_read::children, {}, answer) != both);
    CHECK(mark_of(node_read::data, zk_errc::no_auth, answer) == state(zk_errc::no_auth));
}
