#include "order_store.hpp"

#include <chrono>
#include <thread>

namespace order_server {

namespace {

// "payments" would take two payments of one order: that there is never more than one is what the example is about.
constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS orders(
    id TEXT PRIMARY KEY, item TEXT NOT NULL, quantity INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    amount INTEGER NOT NULL DEFAULT 0, paid_by TEXT NOT NULL DEFAULT '', token INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS orders_by_state ON orders(state);
CREATE TABLE IF NOT EXISTS payments(
    order_id TEXT NOT NULL, token INTEGER NOT NULL, instance TEXT NOT NULL, amount INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS settlement(one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL);
INSERT OR IGNORE INTO settlement VALUES(1, 0);
)";

order row_of(const statement& s) {
    order o;
    o.id = s.text(0);
    o.item = s.text(1);
    o.quantity = s.integer(2);
    o.state = static_cast<order_state>(s.integer(3));
    o.amount = s.integer(4);
    o.paid_by = s.text(5);
    o.token = s.integer(6);
    return o;
}

}  // namespace

order_store::order_store(const std::string& file) : db_(file) {
    // With a log beside the file, readers do not wait for writers. Of two processes that begin at once, one is told
    // that the file is locked, however long it would wait: SQLite's busy timeout does not cover this statement. A crash
    // of the machine may take the last payments with it, which is fine for an example and wrong for a shop: that has
    // FULL.
    for (int attempts = 100;; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
        try {
            db_.execute("PRAGMA journal_mode = WAL");
            break;
        } catch (const store_error&) {
            if (--attempts == 0) throw;
        }
    }
    db_.execute("PRAGMA synchronous = NORMAL");
    write_transaction all_or_nothing(db_);
    db_.execute(schema);
    all_or_nothing.commit();
}

bool order_store::add(const order& o) {
    statement s(db_, "INSERT OR IGNORE INTO orders(id, item, quantity) VALUES(:id, :item, :quantity)");
    s.bind(":id", o.id).bind(":item", o.item).bind(":quantity", o.quantity).run();
    return db_.changes() == 1;
}

std::vector<order> order_store::all(std::int64_t limit) {
    statement s(db_, "SELECT id, item, quantity, state, amount, paid_by, token FROM orders ORDER BY id LIMIT :limit");
    s.bind(":limit", limit);
    std::vector<order> found;
    while (s.step()) found.push_back(row_of(s));
    return found;
}

// [begin]
order_store::reading order_store::begin_payment(const std::string& id, std::int64_t token) {
    reading r;
    statement s(db_, "UPDATE orders SET fence = :token WHERE id = :id AND fence <= :token "
                     "RETURNING id, item, quantity, state, amount, paid_by, token");
    s.bind(":token", token).bind(":id", id);
    if (s.step()) {
        r.is = reading::result::read;
        r.what = row_of(s);
        s.run();  // SQLite has done it when the statement is at its end
        return r;
    }
    statement there(db_, "SELECT 1 FROM orders WHERE id = :id");
    there.bind(":id", id);
    r.is = there.step() ? reading::result::fenced : reading::result::no_such_order;
    return r;
}
// [/begin]

// [finish]
bool order_store::finish_payment(const std::string& id, std::int64_t token, std::string_view instance, cents amount) {
    write_transaction both(db_);
    statement pay(db_, "UPDATE orders SET state = 1, amount = :amount, paid_by = :instance, token = :token "
                       "WHERE id = :id AND fence = :token");
    pay.bind(":amount", amount).bind(":instance", instance).bind(":token", token).bind(":id", id).run();
    if (db_.changes() != 1) return false;
    statement note(db_, "INSERT INTO payments VALUES(:id, :token, :instance, :amount)");
    note.bind(":id", id).bind(":token", token).bind(":instance", instance).bind(":amount", amount).run();
    both.commit();
    return true;
}
// [/finish]

std::optional<int> order_store::settle(std::int64_t token, std::int64_t at_most) {
    write_transaction both(db_);
    statement lead(db_, "UPDATE settlement SET fence = :token WHERE fence <= :token");
    lead.bind(":token", token).run();
    if (db_.changes() != 1) return std::nullopt;
    statement s(db_, "UPDATE orders SET state = 2 WHERE id IN (SELECT id FROM orders WHERE state = 1 LIMIT :at_most)");
    s.bind(":at_most", at_most).run();
    const int settled = db_.changes();
    both.commit();
    return settled;
}

order_store::books order_store::audit() {
    statement s(db_, "SELECT sum(n), sum(n > 1) FROM (SELECT count(*) AS n FROM payments GROUP BY order_id)");
    books b;
    if (s.step()) {
        b.payments = s.integer(0);
        b.paid_twice = s.integer(1);
    }
    return b;
}

}  // namespace order_server
