// What values print as, and when two are equal: every member counts, unless its header says otherwise.
#include "support/catch.hpp"

#include <zkasio/acl.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/error.hpp>
#include <zkasio/lock_kind.hpp>
#include <zkasio/locks/directory_note.hpp>
#include <zkasio/locks/lock_listing.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/session_event.hpp>
#include <zkasio/structure_reports.hpp>
#include <zkasio/types.hpp>

#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

using namespace zkasio;

namespace {

// The names of the first enumerators, which count from 0.
template <class Enum>
std::vector<std::string> names_of(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.emplace_back(to_string(static_cast<Enum>(i)));
    return all;
}

// Every change makes another value of `base`.
template <class Value>
bool each_counts(const Value& base, std::initializer_list<void (*)(Value&)> changes) {
    const Value same = base;
    bool all = same == base;
    for (const auto change : changes) {
        Value other = base;
        change(other);
        all = all && other != base && base != other;
    }
    return all;
}

using strings = std::vector<std::string>;

}  // namespace

TEST_CASE("enumerators: each prints as its name, and another number as unknown") {
    CHECK(names_of<candidate_state>(4) == strings{"standing", "leading", "ended", "unknown"});
    CHECK(names_of<leader_state>(4) == strings{"leader", "nobody", "unknown", "?"});  // `unknown` is a state, too
    CHECK(names_of<lock_directory_kind>(8) ==
          strings{"empty", "mutex", "shared_mutex", "election", "semaphore", "single_node", "other", "unknown"});
    CHECK(names_of<hand_over>(4) == strings{"none", "local", "remote", "unknown"});
    CHECK(names_of<log_level>(5) == strings{"debug", "info", "warning", "error", "unknown"});
    CHECK(names_of<commit_kind>(9) ==
          strings{"put", "claim", "bury", "add", "compare_and_set", "id_block", "modify", "transact", "unknown"});
    CHECK(to_string(static_cast<loss_reason>(99)) == "unknown");
    CHECK(to_string(static_cast<session_state>(99)) == "unknown");
    CHECK(to_string(static_cast<delivery_end>(99)) == "unknown");
    CHECK(to_string(static_cast<partitioner_state>(99)) == "unknown");
    CHECK(to_string(static_cast<persistent_node_state>(99)) == "unknown");
}

TEST_CASE("conditions: each has a text, and another number none") {
    CHECK(std::error_condition(condition::retryable).message() == "may succeed when retried");
    CHECK(std::error_condition(condition::outcome_unknown).message() == "may or may not have been applied");
    CHECK(std::error_condition(condition::session_ended).message() == "session ended");
    CHECK(std::error_condition(condition::cancelled).message() == "cancelled");
    const std::error_condition other(99, std::error_condition(condition::cancelled).category());
    CHECK(other.message() == "unknown condition");
    CHECK_FALSE(std::error_code(errc::client_closed) == other);
}

TEST_CASE("equality: every member of what a recipe tells of itself counts") {
    CHECK(each_counts<candidate_status>(
        {}, {[](auto& s) { s.state = candidate_state::leading; }, [](auto& s) { s.token = fencing_token(7); },
             [](auto& s) { s.reason = loss_reason::released; }}));
    CHECK(
        each_counts<leader_info>({}, {[](auto& i) { i.path = "/a"; }, [](auto& i) { i.data = ""; },
                                      [](auto& i) { i.session_id = 1; }, [](auto& i) { i.token = fencing_token(7); }}));
    leader_info seen_later;
    seen_later.since += std::chrono::hours(1);
    CHECK(seen_later == leader_info());
    CHECK(each_counts<leader_view>(
        {}, {[](auto& v) { v.state = leader_state::nobody; }, [](auto& v) { v.leader.emplace(); }}));
    CHECK(each_counts<member_info>(
        {}, {[](auto& m) { m.id = "a"; }, [](auto& m) { m.data = "a"; }, [](auto& m) { m.path = "/a"; }}));
    CHECK(each_counts<group_view>({}, {[](auto& v) { v.members.emplace_back(); }, [](auto& v) { v.current = true; },
                                       [](auto& v) { v.readable = false; }}));
    CHECK(each_counts<queue_position>({}, {[](auto& p) { p.ahead = 1; }, [](auto& p) { p.predecessor = "/a"; }}));
    CHECK(each_counts<directory_note>({}, {[](auto& n) { n.leader = "a"; }, [](auto& n) { n.proclaimed = "a"; },
                                           [](auto& n) { n.revoked.emplace_back("a"); }}));
}

TEST_CASE("equality: every member of an ACL, of credentials and of a stat counts") {
    CHECK(each_counts<acl_id>(anyone(), {[](auto& who) { who = acl_id("ip", "anyone"); },
                                         [](auto& who) { who = acl_id("world", "everyone"); }}));
    CHECK(each_counts<acl_entry>({permission::read, anyone()},
                                 {[](auto& e) { e = acl_entry(permission::write, anyone()); },
                                  [](auto& e) { e = acl_entry(permission::read, authenticated()); }}));
    CHECK(each_counts<auth_info>({"digest", "a:b"}, {[](auto& a) { a = auth_info("ip", "a:b"); },
                                                     [](auto& a) { a = auth_info("digest", "a:c"); }}));
    CHECK(each_counts<node_stat>(
        {}, {[](auto& s) { s.czxid = 1; }, [](auto& s) { s.mzxid = 1; }, [](auto& s) { s.pzxid = 1; },
             [](auto& s) { s.ctime = 1; }, [](auto& s) { s.mtime = 1; }, [](auto& s) { s.ephemeral_owner = 1; },
             [](auto& s) { s.version = 1; }, [](auto& s) { s.cversion = 1; }, [](auto& s) { s.aversion = 1; },
             [](auto& s) { s.data_length = 1; }, [](auto& s) { s.num_children = 1; }}));
}
