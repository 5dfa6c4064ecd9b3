#include "support/catch.hpp"

#include <zkasio/membership/detail/node_keeper.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <limits>
#include <optional>

using namespace zkasio;
using namespace zkasio::membership_detail;

namespace {

constexpr std::int64_t our_session = 7, container = std::numeric_limits<std::int64_t>::min(),
                       with_ttl = static_cast<std::int64_t>(0xff00'0000'0000'03e8ull),
                       of_server_128 = static_cast<std::int64_t>(0x8019'c8a2'5f3b'0001ull),
                       of_server_255 = static_cast<std::int64_t>(0xff19'c8a2'5f3b'0001ull);

node_facts knowing(create_mode mode, std::int64_t created_by = 0) {
    node_facts facts;
    facts.mode = mode;
    facts.session_id = our_session;
    facts.created_by = created_by;
    return facts;
}

node_stat node_of(std::int64_t owner, std::int64_t czxid = 100) {
    node_stat stat;
    stat.ephemeral_owner = owner;
    stat.czxid = czxid;
    return stat;
}

node_step step_of(const std::optional<node_stat>& seen, const node_facts& facts) {
    return membership_detail::next_step(seen, facts);
}

}  // namespace

TEST_CASE("a node that is missing is created in every mode") {
    for (const create_mode mode : {create_mode::ephemeral, create_mode::persistent, create_mode::container,
                                   create_mode::ephemeral_sequential, create_mode::persistent_ttl})
        CHECK(step_of(std::nullopt, knowing(mode, 100)) == node_step::create);
}

TEST_CASE("an ephemeral node is ours if our session owns it and gets our data unless we have created it") {
    CHECK(step_of(node_of(our_session), knowing(create_mode::ephemeral, 100)) == node_step::stay);
    CHECK(step_of(node_of(our_session), knowing(create_mode::ephemeral, 99)) == node_step::write_data);
    CHECK(step_of(node_of(our_session), knowing(create_mode::ephemeral)) == node_step::write_data);
    node_facts asked = knowing(create_mode::ephemeral, 100);
    asked.has_new_data = true;
    CHECK(step_of(node_of(our_session), asked) == node_step::write_data);
    CHECK(is_ours(node_of(our_session), knowing(create_mode::ephemeral)));
}

TEST_CASE("an ephemeral node waits until the node of another session or one without a session has gone") {
    for (const std::int64_t owner : {std::int64_t(8), std::int64_t(0), container, with_ttl}) {
        CHECK(step_of(node_of(owner), knowing(create_mode::ephemeral)) == node_step::wait_until_gone);
        CHECK(step_of(node_of(owner), knowing(create_mode::ephemeral, 100)) == node_step::wait_until_gone);
        CHECK_FALSE(is_ours(node_of(owner), knowing(create_mode::ephemeral, 100)));
        CHECK(step_of(node_of(owner), knowing(create_mode::ephemeral_sequential)) == node_step::new_name);
    }
}

TEST_CASE("an ephemeral node of a session that was given up is replaced") {
    node_facts facts = knowing(create_mode::ephemeral);
    facts.former_sessions.assign(2, 5);
    CHECK(step_of(node_of(5), facts) == node_step::remove);
    CHECK(step_of(node_of(6), facts) == node_step::wait_until_gone);
    CHECK(step_of(node_of(our_session), facts) == node_step::write_data);
    CHECK(step_of(node_of(0), facts) == node_step::wait_until_gone);
    CHECK_FALSE(is_ours(node_of(5), facts));
}

TEST_CASE("a node that is not ephemeral takes over one that is none either") {
    for (const create_mode mode : {create_mode::persistent, create_mode::container, create_mode::persistent_ttl}) {
        for (const std::int64_t owner : {std::int64_t(0), container, with_ttl}) {
            CHECK(step_of(node_of(owner), knowing(mode)) == node_step::write_data);
            CHECK(step_of(node_of(owner), knowing(mode, 99)) == node_step::write_data);
            CHECK(step_of(node_of(owner), knowing(mode, 100)) == node_step::stay);
            CHECK_FALSE(is_ours(node_of(owner), knowing(mode, 99)));
            CHECK(is_ours(node_of(owner), knowing(mode, 100)));
        }
        CHECK(step_of(node_of(our_session), knowing(mode)) == node_step::wait_until_gone);
        CHECK(step_of(node_of(8), knowing(mode, 100)) == node_step::wait_until_gone);
    }
    CHECK(step_of(node_of(0), knowing(create_mode::persistent_sequential, 99)) == node_step::new_name);
    node_facts unknown = knowing(create_mode::persistent_sequential, 99);
    unknown.outcome_unknown = true;
    CHECK(step_of(node_of(0), unknown) == node_step::write_data);
    CHECK(is_ours(node_of(0), unknown));
}

// The servers' EphemeralType: a session's id begins with the number of its server, and with bits of the time.
TEST_CASE("a node of a session is ephemeral, whichever server has made the session") {
    for (const std::int64_t owner : {our_session, of_server_128, of_server_255, std::int64_t(-1), container + 1})
        CHECK(node_of(owner).is_ephemeral());
    constexpr auto longest_ttl = static_cast<std::int64_t>(0xff00'00ff'ffff'ffffull);
    for (const std::int64_t owner : {std::int64_t(0), container, with_ttl, longest_ttl})
        CHECK_FALSE(node_of(owner).is_ephemeral());
}

TEST_CASE("a node of a session of server 255 is not written into, and is replaced when its session was given up") {
    CHECK(step_of(node_of(of_server_255), knowing(create_mode::persistent)) == node_step::wait_until_gone);
    CHECK(step_of(node_of(of_server_255), knowing(create_mode::ephemeral)) == node_step::wait_until_gone);
    CHECK_FALSE(is_ours(node_of(of_server_255), knowing(create_mode::persistent, 100)));
    node_facts facts = knowing(create_mode::ephemeral);
    facts.former_sessions.assign(1, of_server_255);
    CHECK(step_of(node_of(of_server_255), facts) == node_step::remove);
    facts.session_id = of_server_255;
    CHECK(is_ours(node_of(of_server_255), facts));
}

TEST_CASE("each state of a persistent node has a name") {
    CHECK(to_string(persistent_node_state::creating) == "creating");
    CHECK(to_string(persistent_node_state::taken) == "taken");
    CHECK(to_string(persistent_node_state::standing) == "standing");
    CHECK(to_string(persistent_node_state::ended) == "ended");
}
