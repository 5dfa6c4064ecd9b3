#pragma once

#include "simulation/sim_names.hpp"

#include <zkasio/election/candidate.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

inline const std::string candidates_directory = "/elections/candidates";

/// A candidate, and what its program knows of it. A token of 0: there is no term.
struct watched_candidate {
    watched_candidate(int c, std::string i) : client(c), id(std::move(i)) {}

    const int client;
    const std::string id;              // in its nodes
    std::optional<candidate> object;   // nothing: was destroyed
    std::optional<candidate_status> told;  // by next(), last
    bool reads = false;                // waits in next()
    bool closed = false;               // close() was called, or the object destroyed
    std::int64_t leads = 0;            // token of the term in which it leads
    std::int64_t over = 0;             // the highest token of its terms that have ended
    std::set<std::int64_t> given_up;   // tokens of the terms that step_down() or close() has ended
    std::set<std::int64_t> lost;       // tokens of other terms that have ended
    std::map<std::int64_t, std::shared_ptr<const leadership>> terms;
};

/// Watches candidates from outside: what their programs are told, and what happens in the tree. Throws `violation` when
/// the two do not add up.
///
/// Of the candidates that lead, and whose nodes are there, there is never more than one; each term has a higher token
/// than all before. A candidate never leads again in a term that has ended. next() tells begins and ends of terms in
/// order, each once at most, with reasons that have causes in the tree. A leader's own removal of its node comes after
/// the end of all bodies under its term, unless the term was lost. Where an operator deletes nodes, a candidate that is
/// handed the leadership by one that had lost it, and could not know, may lead until the servers have answered: its
/// term is doubted.
class candidate_checker {
    struct running_body {
        const leadership* leader;
        std::int64_t token;
        std::shared_ptr<const watched_candidate> who;
        bool stops = false;  // was cancelled
    };
    using body_list = std::list<running_body>;

public:
    using candidate_ptr = std::shared_ptr<watched_candidate>;

    /// A body of run(), from its begin to its end.
    class body {
    public:
        body(candidate_checker& checker, candidate_ptr who, const leadership& leader);
        body(const body&) = delete;
        body& operator=(const body&) = delete;
        ~body() { bodies_->erase(at_); }
        void is_cancelled() noexcept { at_->stops = true; }

    private:
        // When a scenario fails, its coroutines are destroyed after it.
        std::shared_ptr<body_list> bodies_;
        body_list::iterator at_;
    };

    // ------------------------------------------------------------------------------------- what programs do, and hear
    void stands(candidate_ptr who) { candidates_.push_back(std::move(who)); }
    /// step_down() is about to be called. Returns the token of the term that it ends.
    std::int64_t gives_up(watched_candidate& who);
    std::int64_t closes(watched_candidate& who);
    /// step_down() or close() has completed: the bodies have ended and the node is removed, or the session is over.
    void has_given_up(const watched_candidate& who, std::int64_t token) const;
    /// @param when_asked the status when next() was called.
    void told(watched_candidate& who, const candidate_status& now, const candidate_status& when_asked) const;
    void connections_break() noexcept { connections_break_ = true; }
    void loses_with_connection() noexcept { loses_with_connection_ = true; }
    /// Time passes, and nobody but the servers ends sessions: a lease ends before its session does.
    void leases_end() noexcept { leases_end_ = true; }

    // ------------------------------------------------------------------------------------------------------- checks
    void committed(const sim_txn& txn);
    void check();        ///< between any two steps
    void check_quiet();  ///< nothing is under way, and all clients have connections
    std::vector<std::string> nodes() const;
    const std::vector<candidate_ptr>& candidates() const noexcept { return candidates_; }

private:
    enum class removal {
        none,
        by_itself,
        by_operator,
        with_session,
    };
    struct node {
        std::string path, id;
        std::int64_t session = 0;
        removal gone = removal::none;
    };
    void observe(watched_candidate& who);
    void begins(watched_candidate& who, std::int64_t token);
    void check_reason(const watched_candidate& who, const candidate_status& now) const;
    bool stands(std::int64_t token) const;
    bool is_lost(const running_body& b) const;
    const node* eldest() const;

    std::vector<candidate_ptr> candidates_;
    std::shared_ptr<body_list> bodies_ = std::make_shared<body_list>();
    std::map<std::int64_t, node> nodes_;  // all that there were, by czxid
    std::set<std::int64_t> doubted_;      // tokens
    std::int64_t highest_token_ = 0;
    bool operator_was_here_ = false, connections_break_ = false, loses_with_connection_ = false, leases_end_ = false;
};

}  // namespace zkasio::test
