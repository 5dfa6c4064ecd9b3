#include "simulation/value_scenario.hpp"

#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace zkasio::test {
namespace {

const std::string value_path = "/deep/value", receipts_path = "/receipts";

std::string parse(std::string_view text) {
    std::string read(text);
    if (!value_history::is_readable(read)) throw std::invalid_argument("nonsense");
    return read;
}

config_format<std::string> format() {
    return config_format<std::string>(&parse, [](const std::string& text) { return text; });
}

}  // namespace

value_scenario::value_scenario(simulation& s, const value_faults& f) : s_(s), faults_(f), history_(value_path) {
    s_.ensemble.on_commit = [this](const sim_txn& txn) { history_.committed(txn); };
    s_.on_idle = [this] { check_readers(); };
    s_.on_quiet = [this] { check_quiet(); };
}

value_scenario::~value_scenario() {
    s_.ensemble.on_commit = [](const sim_txn&) {};
    s_.on_idle = s_.on_quiet = [] {};
}

value_scenario::value value_scenario::value_of(int client) const {
    config_options<std::string> options;
    options.default_value(std::string());
    return {s_.client_number(client), value_path, format(), std::move(options)};
}

// ----------------------------------------------------------------------------------------------------------- writers

asio::awaitable<void> value_scenario::write(std::size_t rounds) {
    for (; rounds > 0; --rounds) {
        co_await s_.pause(s_.pick(40));
        const int client = some_client();
        const way how = static_cast<way>(s_.pick(4));
        const std::string id = std::to_string(++ids_);
        const auto o = std::make_shared<outcome>();
        running task(s_.user_executor(client), change(client, how, id, o));
        const auto cancelled = std::make_shared<bool>(false);
        if (faults_.cancellations && s_.chance(30))
            s_.after(s_.pick(60), [task, cancelled]() mutable {
                if (task.ended()) return;
                *cancelled = true;
                task.cancel();
            });
        const std::exception_ptr not_begun = co_await task.end();
        if (not_begun && !*cancelled) std::rethrow_exception(not_begun);
        if (not_begun) o->code = asio::error::operation_aborted;
        s_.note("change ", id, ": ", o->written ? "made" : o->what);
        told(how, id, *o, *cancelled);
    }
    --working_;
}

asio::awaitable<void> value_scenario::change(int client, way how, std::string id, std::shared_ptr<outcome> o) {
    try {
        switch (how) {
            case way::certain_modify: co_await modify_once(client, true, id, o); break;
            case way::plain_modify: co_await modify_once(client, false, id, o); break;
            case way::update: co_await update_once(client, id, o); break;
            case way::set_version: co_await set_once(client, id, o); break;
        }
    } catch (const error& e) {
        o->code = e.code();
        o->unknown = e.outcome_unknown();
        o->is_bad = e.code() == errc::invalid_argument && how == way::update;
        o->what = e.what();
    } catch (const std::system_error& e) {
        o->code = e.code();
        o->what = e.what();
    } catch (const std::invalid_argument& e) {
        o->is_bad = true;
        o->what = e.what();
    }
}

asio::awaitable<void> value_scenario::modify_once(int client, bool certain, std::string id,
                                                  std::shared_ptr<outcome> o) {
    modify_options options;
    if (certain) options.receipts(receipts_path);
    auto add = [&](std::optional<node_data> before) {
        return std::optional<std::string>((before ? parse(before->data) : std::string()) + id + ' ');
    };
    const modified done = co_await modify(s_.client_number(client), value_path, add, options);
    if (!done.written || !done.version) throw violation(id + " was not written");
    o->written = true;
    o->version = *done.version;
    o->zxid = done.zxid;
}

asio::awaitable<void> value_scenario::update_once(int client, std::string id, std::shared_ptr<outcome> o) {
    const value v = value_of(client);
    auto add = [&](std::string before) { return before + id + ' '; };
    const config_snapshot<std::string> done = co_await v.update(add);
    o->written = true;
    o->version = done.version;
    co_await v.close();
}

// Adds a change to what this client believes to be the value.
asio::awaitable<void> value_scenario::set_once(int client, std::string id, std::shared_ptr<outcome> o) {
    const value v = value_of(client);
    co_await v.ready();
    const config_snapshot<std::string> now = v.snapshot();
    if (now.problem) throw std::invalid_argument("the value is bad");
    const std::string next = *now.value + id + ' ';
    const std::int32_t version = co_await v.set(next, now.version);
    o->written = true;
    o->version = version;
}

void value_scenario::told(way how, const std::string& id, const outcome& o, bool cancelled) {
    if (o.written) return history_.was_made(id, o.version, o.zxid);
    const bool certain = how == way::certain_modify;
    const bool lost_answer = o.unknown && o.code == zk_errc::connection_loss;
    const bool session_over = o.code == errc::session_expired && (o.unknown || !certain);
    const bool may_fail = (cancelled && o.code == condition::cancelled) || (faults_.operator_writes && o.is_bad) ||
        (how == way::set_version && !o.unknown && o.code == zk_errc::bad_version) ||
        (lost_answer && (certain ? faults_.operator_deletes_receipts : faults_.drops || faults_.expiries)) ||
        (session_over && faults_.expiries) ||
        (!certain && !o.unknown && faults_.throttled > 0 && o.code == zk_errc::throttled);
    if (!may_fail) throw violation("change " + id + " failed: " + o.what);
    if (!o.unknown) history_.was_not_made(id);
}

// ----------------------------------------------------------------------------------------------------------- readers

void value_scenario::open_reader(int client) {
    reader& r = readers_.emplace_back(client);
    r.follows.emplace(value_of(client));
    r.reads.emplace(s_.user_executor(client), read(&r));
}

asio::awaitable<void> value_scenario::read(reader* r) {
    co_await r->follows->ready();
    r->ready = true;
    const config_changes<std::string> changes = r->follows->changes();
    for (;;) {
        config_snapshot<std::string> now = co_await changes.next();
        s_.note("client ", std::to_string(r->client), " is told version ", std::to_string(now.version));
        const bool same = r->last && r->last->version == now.version && r->last->value == now.value &&
                          r->last->problem.has_value() == now.problem.has_value();
        if (same) throw violation("a reader is told the same twice");
        r->told = history_.find(now, r->told, "changes()");
        r->last = std::move(now);
    }
}

// No value is older than the last one, also if the server of the next connection, or session, lags behind.
void value_scenario::check_readers() {
    for (reader& r : readers_)
        if (r.ready) r.seen = history_.find(r.follows->snapshot(), r.seen, "snapshot()");
}

void value_scenario::check_quiet() {
    for (reader& r : readers_) {
        const bool is_connected = s_.client_number(r.client).state() == session_state::connected;
        if (!is_connected || s_.ensemble.is_stopped(r.client)) continue;
        if (!r.ready) throw violation("a reader is not ready");
        history_.find(r.follows->snapshot(), history_.newest(), "at last, a reader");
        if (!r.last) throw violation("a reader is told nothing");
        history_.find(*r.last, history_.newest(), "at last, changes()");
    }
}

// ------------------------------------------------------------------------------------------------------------ faults

asio::awaitable<void> value_scenario::write_nonsense() {
    const sim_node* const n = s_.ensemble.tree().find(value_path);
    if (!n) co_return;
    const std::string good = n->data;
    const bool touches = s_.chance(50);
    s_.ensemble.operate(detail::set_request{value_path, touches ? good : "nonsense", any_version});
    if (touches) co_return;
    co_await s_.pause(s_.pick(60));
    s_.ensemble.operate(detail::set_request{value_path, good, any_version});
}

void value_scenario::delete_receipt() { s_.delete_child_of(receipts_path); }

asio::awaitable<void> value_scenario::trouble(std::size_t rounds) {
    for (; rounds > 0 && working_ > 1; --rounds) {
        co_await s_.pause(5 + s_.pick(40));
        const int victim = some_client();
        const std::size_t what = s_.pick(5);
        if (what == 0 && faults_.drops) s_.ensemble.drop_connection(victim);
        if (what == 1 && faults_.expiries) s_.ensemble.expire(victim);
        if (what == 2 && faults_.stops) {
            s_.ensemble.stop_process(victim);
            s_.after(s_.pick(80), [this, victim] { s_.ensemble.continue_process(victim); });
        }
        if (what == 3 && faults_.operator_writes) co_await write_nonsense();
        if (what == 4 && faults_.operator_deletes_receipts) delete_receipt();
    }
    --working_;
}

// ------------------------------------------------------------------------------------------------------------- a run

void value_scenario::run_at_random() {
    s_.let_users_be_late();
    s_.ensemble.throttled = faults_.throttled;
    const std::size_t clients = 2 + s_.pick(3);
    for (std::size_t n = 0; n < clients; ++n) s_.add_client();
    for (std::size_t n = s_.pick(4); n > 0; --n) open_reader(some_client());
    for (std::size_t n = 1 + s_.pick(6); n > 0; --n, ++working_) s_.spawn(write(1 + s_.pick(6)));
    ++working_;
    s_.spawn(trouble(20 + s_.pick(20)));
    s_.run();
    if (working_ != 0) throw violation("a writer has not ended");
    check_quiet();
    end();
}

void value_scenario::end() {
    for (reader& r : readers_) {
        r.ready = false;
        if (r.reads->ended()) {
            s_.spawn([](running reads) -> asio::awaitable<void> {
                const std::exception_ptr failed = co_await reads.end();
                if (failed) std::rethrow_exception(failed);
                throw violation("a reader has ended");
            }(*r.reads));
        }
        r.reads->cancel();
    }
    s_.on_quiet = [] {};
    s_.run();
    readers_.clear();
    s_.run();
    s_.close();
}

}  // namespace zkasio::test
