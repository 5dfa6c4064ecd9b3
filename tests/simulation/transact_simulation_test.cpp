#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/error.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace transact_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

using seen = std::optional<node_data>;

constexpr std::size_t accounts = 20;
constexpr int per_account = 3, total = per_account * static_cast<int>(accounts);

const std::string bank = "/bank/", receipts_of_all = "/receipts", turns_of_all = "/turns";

std::string account(std::size_t n) { return bank + std::to_string(n); }

// "3 <the last transfer>". Every second account has no node until money comes. No node is removed: a transaction cannot
// tell a node from one of the same version that was there before.
int money_in(const std::string& data) { return std::stoi(data); }
int money_in(const seen& n) { return n ? money_in(n->data) : 0; }
std::string data_of(int money, const std::string& transfer) { return std::to_string(money) + ' ' + transfer; }

// What the servers have applied, from outside.
class ledger {
public:
    void committed(const sim_txn& txn) {
        std::set<std::string> transfers;
        for (const sim_change& c : txn.changes) {
            if (!c.path.starts_with(bank)) continue;
            // An account that is missing is created without data, and removed again.
            if (c.what != sim_change::kind::removed && !c.node.data.empty()) {
                money_[c.path] = money_in(c.node.data);
                if (txn.session != 0) transfers.insert(c.node.data.substr(c.node.data.find(' ') + 1));
            }
        }
        if (!open_) return;
        int sum = 0;
        for (const auto& [path, money] : money_) {
            sum += money;
            if (money < 0) throw violation(path + " has " + std::to_string(money));
        }
        if (sum != total) throw violation("all accounts have " + std::to_string(sum));
        if (transfers.size() > 1) throw violation("two transfers in one transaction");
        for (const std::string& id : transfers)
            if (++applied_[id] > 1) throw violation("transfer " + id + " was applied twice");
    }
    void opened() { open_ = true; }

    std::size_t applied(const std::string& id) const { return applied_.contains(id) ? applied_.at(id) : 0; }
    /// What the caller was told of a transfer: it was applied, or it never is.
    void told(const std::string& id, bool done) {
        if (done != (applied(id) == 1)) throw violation("transfer " + id + (done ? " is lost" : " was applied"));
        if (!done) never_.insert(id);
    }
    void check_end() const {
        for (const std::string& id : never_)
            if (applied(id) > 0) throw violation("transfer " + id + " was applied after all");
    }

private:
    bool open_ = false;
    std::map<std::string, int> money_;
    std::map<std::string, std::size_t> applied_;
    std::set<std::string> never_;
};

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_touches = false;  // accounts: their versions change
    bool operator_deletes = false;  // receipts
};

// Clients transfer money between accounts, and audit them.
class bank_scenario {
public:
    bank_scenario(simulation& simulated, troubles t) : s(simulated), with_(t) {
        s.ensemble.on_commit = [this](const sim_txn& txn) {
            if (txn.ends_session) sessions_end_ = true;
            book_.committed(txn);
        };
    }
    ~bank_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        operate("/bank", "");
        for (std::size_t n = 0; n < accounts; n += 2) operate(account(n), data_of(2 * per_account, "seed"));
        book_.opened();
        const std::size_t clients = 2 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        const std::size_t workers = 3 + s.pick(8), rounds = 2 + s.pick(4);
        busy_accounts_ = s.chance(50) ? 3 : accounts;
        if (s.chance(40)) how_.promote_to(turns_of_all).tries(1 + static_cast<int>(s.pick(3)));
        how_.receipts(receipts_of_all);
        for (std::size_t n = 0; n < workers; ++n) {
            ++working_;
            s.spawn(s.user_executor(), worker(static_cast<int>(s.pick(clients)), rounds));
        }
        s.spawn(trouble());
        s.run();
        if (working_ != 0) throw violation("a worker has not ended");
        book_.check_end();
        s.close();
    }

private:
    void operate(const std::string& path, const std::string& data) {
        detail::create_request r;
        r.path = path;
        r.data = data;
        r.acl = open_acl();
        s.ensemble.operate(r);
    }

    // False: the account has too little money.
    static asio::awaitable<bool> transfer(unit& u, std::string from, std::string to, int amount, std::string id) {
        const seen a = co_await u.get(from);
        const seen b = co_await u.get(to);
        const int left = money_in(a) - amount;
        if (left < 0) co_return false;
        u.set(from, data_of(left, id));
        if (b)
            u.set(to, data_of(money_in(b) + amount, id));
        else
            u.create(to, data_of(amount, id));
        co_return true;
    }

    static asio::awaitable<bool> audit(unit& u) {
        std::vector<std::string> paths;
        for (std::size_t n = 0; n < accounts; ++n) paths.push_back(account(n));
        const std::vector<seen> all = co_await u.get_all(paths);
        int sum = 0;
        for (const seen& n : all) sum += money_in(n);
        co_return sum == total;
    }

    struct outcome {
        std::optional<bool> done;
        std::error_code code;
        bool unknown = false;
        std::string what;
    };

    static asio::awaitable<void> try_transfer(bank_scenario& self, client zk, std::string id, outcome& o) {
        const std::size_t from = self.s.pick(self.busy_accounts_);
        const std::size_t to = (from + 1 + self.s.pick(self.busy_accounts_ - 1)) % self.busy_accounts_;
        const int amount = 1 + static_cast<int>(self.s.pick(4));
        self.s.note("transfer ", id, " from ", account(from), " to ", account(to));
        const auto body = [&](unit& u) { return transfer(u, account(from), account(to), amount, id); };
        co_await keep(transact(zk, body, self.how_), o);
    }
    static asio::awaitable<void> try_audit(bank_scenario& self, client zk, outcome& o) {
        co_await keep(transact(zk, &audit, self.how_), o);
    }
    static asio::awaitable<void> keep(asio::awaitable<bool> operation, outcome& o) {
        try {
            o.done = co_await std::move(operation);
        } catch (const error& e) {
            o.code = e.code();
            o.unknown = e.outcome_unknown();
            o.what = e.what();
        } catch (const std::system_error& e) {
            o.code = e.code();
            o.what = e.what();
        }
    }

    asio::awaitable<void> worker(int number, std::size_t rounds) {
        const client zk = s.client_number(number);
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(25));
            const std::string id = std::to_string(++ids_);
            const bool audits = s.chance(20);
            const auto o = std::make_shared<outcome>();
            running task(s.user_executor(), audits ? try_audit(*this, zk, *o) : try_transfer(*this, zk, id, *o));
            const auto cancelled = std::make_shared<bool>(false);
            if (with_.cancellations && s.chance(40))
                s.after(s.pick(60), [task, cancelled]() mutable {
                    if (task.ended()) return;
                    *cancelled = true;
                    task.cancel();
                });
            const std::exception_ptr not_begun = co_await task.end();  // it was cancelled before
            if (not_begun && *cancelled) o->code = asio::error::operation_aborted;
            s.note(audits ? "audit: " : "transfer " + id + ": ", o->done ? "done" : o->what);
            expect(id, *o, audits, *cancelled);
        }
        --working_;
    }

    void expect(const std::string& id, const outcome& o, bool audits, bool cancelled) {
        if (audits && o.done && !*o.done) throw violation("an audit has seen what never was");
        if (o.done && !audits) book_.told(id, *o.done);
        if (o.done) return;
        const bool may_fail = (cancelled && o.code == condition::cancelled) ||
                              (sessions_end_ && o.unknown && o.code == errc::session_expired) ||
                              (with_.operator_deletes && o.unknown && o.code == zk_errc::connection_loss);
        if (!may_fail) throw violation("transfer " + id + " failed: " + o.what);
        if (audits && o.unknown) throw violation("an audit is uncertain");
        if (!audits && !o.unknown) book_.told(id, false);
    }

    asio::awaitable<void> trouble() {
        for (int n = 0; n < 40 && working_ > 0; ++n) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(5);
            if (what == 0 && with_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && with_.expiries) s.ensemble.expire(victim);
            if (what == 2 && with_.operator_touches) touch(account(s.pick(busy_accounts_)));
            if (what == 3 && with_.operator_deletes) delete_receipt();
            if (what == 4) s.ensemble.remove_empty_containers();
        }
    }
    void touch(const std::string& path) {
        if (const sim_node* n = s.ensemble.tree().find(path))
            s.ensemble.operate(detail::set_request{path, n->data, any_version});
    }
    void delete_receipt() { s.delete_child_of(receipts_of_all); }

    simulation& s;
    const troubles with_;
    transact_options how_;
    ledger book_;
    std::size_t busy_accounts_ = accounts, working_ = 0, ids_ = 0;
    bool sessions_end_ = false;
};

void run_bank(const std::string& name, troubles t) {
    run_seeds(name, 200, [&](simulation& s) { bank_scenario(s, t).run(); });
}

}  // namespace

TEST_CASE("transact, simulated: transfers between accounts", "[simulation]") { run_bank("calm", {}); }

TEST_CASE("transact, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_bank("drops", t);
}

TEST_CASE("transact, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_bank("expiries", t);
}

TEST_CASE("transact, simulated: transfers are cancelled, and an operator is about", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = t.operator_touches = t.operator_deletes = true;
    run_bank("all of it", t);
}

}  // namespace transact_simulation_tests
