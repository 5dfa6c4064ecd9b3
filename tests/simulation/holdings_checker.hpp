#pragma once

#include "simulation/checker.hpp"

#include "simulation/lock_scenario.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zkasio::test {

/// Watches any kinds of locks together, by what they have in common: a grant is a number of nodes, and of everything
/// that is locked there is so much, of which each node takes its weight. A mutex is 1, and its node weighs 1; a
/// semaphore is its number of permits. The nodes are children of what is locked, or the one node of that name.
///
/// Never more is held than there is; a grant is everything that was asked for; nobody holds what he was told to be
/// lost; nobody waits unless somebody holds who stands, maybe through others who wait, in the way; nothing is left
/// behind, also of those who know of their loss and keep the guard; and nobody is given what a body of its client still
/// runs under, although it was lost. Who has lost a node and will only know from a heartbeat may stand in the way, too,
/// until then. Who is handed something by one who had lost it, and could not know, may believe to hold it until the
/// servers have answered.
class holdings_checker final : public checker {
public:
    holdings_checker(const sim_ensemble& ensemble, std::map<std::string, int> there_is)
        : ensemble_(ensemble), there_is_(std::move(there_is)) {}

    std::string asks(int client, const lock_under_test& what, lock_kind kind, bool patient) override;
    void granted(const std::string& id, const lock_guard& guard) override;
    void gives_up(const std::string& id) override;
    void works(const std::string& id, bool now) override { attempts_.at(id).working = now; }
    void released(const std::string& id) const override;

    void committed(const sim_txn& txn) override;
    void told_removed(int client, const std::string& path, std::int64_t czxid) override;

    void check() const override;
    void check_quiet() override;
    void check_end() const override;
    std::size_t losses() const override;
    bool busy(int client) const override;
    std::optional<int> waits_for_a_heartbeat() const override;
    std::size_t nodes_alive() const override { return alive().size(); }
    std::string nth_node(std::size_t n) const override;

private:
    struct node {
        std::string path;
        std::string attempt;
        std::int64_t owner = 0;
        std::int64_t czxid = 0;
        bool alive = true;
        bool taken_away = false;  // by an operator, or by the end of its session
        bool told = false;        // its client knows
        bool over = false;        // whatever its client has made of it was answered
    };
    struct attempt {
        enum class state {
            asking,
            holding,
            gone,
        };
        int client = 0;
        bool patient = true;
        std::vector<share> shares;
        state now = state::asking;
        const lock_guard* guard = nullptr;
        std::vector<std::size_t> nodes;  // those of the grant
        bool working = false;            // a body runs under it, which does not end when it is lost
        bool doubted = false;            // given by one of the same client who had lost it without knowing
        bool has_lost() const { return now == state::holding && guard->reason() != loss_reason::none; }
    };

    std::string locked_by(const std::string& path) const;
    std::vector<const node*> alive() const;
    int weight(const attempt& a, const std::string& of) const;
    enum class whom { but_doubted, all };
    void check_amounts(whom counts) const;
    void check_complete(const std::string& id, const attempt& a) const;
    void check_bodies(const std::string& id, const attempt& a) const;
    bool has_unknown_loss(const std::string& id) const;
    bool may_be_given_in_vain(const std::string& id) const;
    bool somebody_holds(const std::string& waiter) const;

    const sim_ensemble& ensemble_;
    std::map<std::string, int> there_is_;  // by what is locked
    std::map<std::string, attempt> attempts_;
    std::vector<node> nodes_;                        // in the order of their creation
    std::map<std::string, std::size_t> latest_;     // by path: the same name may come again
    bool operator_was_here_ = false;
};

}  // namespace zkasio::test
