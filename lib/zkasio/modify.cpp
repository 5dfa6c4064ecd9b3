#include <zkasio/modify.hpp>

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/recipe/certain.hpp>
#include <zkasio/recipe/local_turn.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>

#include <system_error>
#include <utility>

namespace zkasio {

modify_options& modify_options::receipts(std::string directory) {
    require_path("modify", directory);
    receipts_ = std::move(directory);
    return *this;
}

modify_options& modify_options::tries(int n) {
    if (n < 1) throw error(errc::invalid_argument, "modify", {}, "there is at least one try");
    tries_ = n;
    return *this;
}

namespace {

modified modified_by(const node_stat& written) {
    modified m;
    m.written = true;
    m.version = written.version;
    m.zxid = written.mzxid;
    return m;
}

bool is_other_writer(const error& e, std::optional<std::int32_t> version) {
    if (e.outcome_unknown()) return false;
    if (!version) return e.code() == zk_errc::node_exists;
    return e.code() == zk_errc::bad_version || e.code() == zk_errc::no_node;
}

// Writes the node that has `version`, or that does not exist. Nothing: another client was ahead.
asio::awaitable<std::optional<modified>> write_plainly(operations on, std::string path, std::string text,
                                                       std::optional<std::int32_t> version, create_options how) {
    try {
        if (version) {
            const node_stat now = co_await on.set(path, text, *version);
            co_return modified_by(now);
        }
        const std::optional<created> made = co_await on.create_unless_exists(path, text, how);
        if (made) co_return modified_by(made->stat);
    } catch (const error& e) {
        if (!is_other_writer(e, version)) throw;
    }
    co_return std::nullopt;
}

enum class certain_end {
    written,
    not_written,  // another client was ahead, or the session is over
    no_parent,
};

struct certain_write {
    certain_end end = certain_end::not_written;
    std::int64_t zxid = 0;
    std::error_code code;
};

asio::awaitable<certain_write> try_write_once(receipts with, std::string path, std::string text,
                                              std::optional<std::int32_t> version, create_options how) {
    certain_write w;
    const bool makes_parents = how.parents() != missing_parents::fail && parent_path(path) != "/";
    transaction steps;
    if (version)
        steps.set(path, text, *version);
    else
        steps.create(path, text, how.parents(missing_parents::fail));
    try {
        const committed done = co_await with.apply(std::move(steps), "modify");
        w.zxid = done.zxid;
        w.end = certain_end::written;
    } catch (const error& e) {
        w.code = e.code();
        const bool no_parent = !version && makes_parents && e.code() == zk_errc::no_node && e.path() == path;
        if (no_parent && !e.outcome_unknown())
            w.end = certain_end::no_parent;
        else if (e.outcome_unknown() || (!is_other_writer(e, version) && e.code() != errc::session_expired))
            throw;
    }
    co_return w;
}

// The reads and writes of one modify(), on the current session, or with receipts on one session after another.
class modification {
public:
    modification(operations on, std::string path, modify_options how)
        : from_(std::move(on)),
          path_(std::move(path)),
          how_(std::move(how)),
          on_(from_),
          pace_(toolbox(from_).make_session_pace()) {}

    asio::awaitable<std::optional<node_data>> read(bool behind_sync) {
        for (;;) {
            std::error_code failed;
            if (needs_session()) co_await begin_session();
            try {
                if (behind_sync) co_await on_.sync(path_);
                std::optional<node_data> found = co_await on_.get(path_);
                co_return found;
            } catch (const error& e) {
                failed = e.code();
                const bool may_go_on = failed == zk_errc::no_node || (with_ && failed == errc::session_expired);
                if (!may_go_on) rethrow_as("modify", path_);
            }
            if (failed == zk_errc::no_node) co_return std::nullopt;
            with_.reset();
        }
    }

    asio::awaitable<std::optional<modified>> write(std::string text, std::optional<std::int32_t> version) {
        try {
            if (with_) co_return co_await write_once(std::move(text), version);
            co_return co_await write_plainly(on_, path_, std::move(text), version, how_.create_with());
        } catch (const error&) {
            rethrow_as("modify", path_);
        }
    }

    /// With receipts, before the first read and when a session has ended.
    bool needs_session() const noexcept { return !how_.receipts().empty() && !with_; }

private:
    asio::awaitable<void> begin_session() {
        if (std::exchange(had_session_, true)) co_await pace_.pause("modify", path_);
        const session now = co_await toolbox(from_).own_session("modify", path_);
        if (now.over()) throw error(errc::session_expired, "modify", path_);
        with_.emplace(now, how_.receipts(), how_.create_with().acl());
        on_ = now.patient();
        session_ = now.patient();
    }

    asio::awaitable<std::optional<modified>> write_once(std::string text, std::optional<std::int32_t> version) {
        for (;;) {
            const certain_write done = co_await try_write_once(*with_, path_, text, version, how_.create_with());
            if (done.end == certain_end::no_parent) {
                const bool is_there = co_await create_parent();
                if (is_there) continue;
                with_.reset();
                co_return std::nullopt;
            }
            if (done.end == certain_end::written) {
                modified m;
                m.written = true;
                m.version = version ? next_version(*version) : 0;
                m.zxid = done.zxid;
                co_return m;
            }
            if (done.code == errc::session_expired) with_.reset();
            co_return std::nullopt;
        }
    }

    // Creates the missing parents. False: the session is over. An error is thrown without outcome_unknown(): the node
    // itself was not written.
    asio::awaitable<bool> create_parent() {
        create_options how;
        how.acl(how_.create_with().acl()).parents(how_.create_with().parents());
        if (how.parents() == missing_parents::create_container) how.mode(create_mode::container);
        try {
            co_await ensure_created(session_, std::string(parent_path(path_)), bytes(), how);
            co_return true;
        } catch (const error& e) {
            if (e.code() != errc::session_expired) throw error(e.code(), e.operation(), e.path(), e.hint());
        }
        co_return false;
    }

    static std::int32_t next_version(std::int32_t v) noexcept {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(v) + 1);
    }

    const operations from_;
    const std::string path_;
    const modify_options how_;
    operations on_;
    session session_;               // with receipts: the session that on_ names
    std::optional<receipts> with_;  // of `session_`
    bool had_session_ = false;
    session_pace pace_;
};

// One of several modify() of a session that meet conflicts at a time goes on.
asio::awaitable<modified> modify_until_certain(operations on, std::string path, detail::node_change_function change,
                                               modify_options how, std::optional<local_turn>& turn,
                                               commit_report& r) {
    back_off pauses = toolbox(on).make_back_off();
    modification node(on, path, how);
    int tries = 0;
    for (bool again = false;; again = true) {
        std::optional<node_data> before = co_await node.read(again);
        modified left;
        if (before) {
            left.version = before->stat.version;
            left.zxid = before->stat.mzxid;
        }
        std::optional<std::string> text = change(std::move(before));
        if (!text) co_return left;
        if (left.version && *left.version < 0)
            throw error(std::make_error_code(std::errc::result_out_of_range), "modify", path,
                        "the version of the node is negative, which no write can name as its condition");
        const std::optional<modified> done = co_await node.write(std::move(*text), left.version);
        if (done) co_return *done;
        if (node.needs_session()) {  // no conflict: the session is over, and with it the turn
            turn.reset();
            continue;
        }
        ++r.conflicts;
        if (++tries == how.tries())
            throw error(zk_errc::bad_version, "modify", path,
                        "other clients were ahead " + std::to_string(tries) + " times");
        bool has_waited = false;
        if (!turn) {
            const session now = co_await toolbox(on).own_session("modify", path);
            turn.emplace(now, path, std::nullopt);
            has_waited = co_await turn->come("modify", path);
        }
        if (!has_waited) co_await pauses.pause("modify", path);
    }
}

asio::awaitable<modified> modify_in_turn(operations on, std::string path, detail::node_change_function change,
                                         modify_options how, commit_report& r) {
    std::optional<local_turn> turn;
    try {
        co_return co_await modify_until_certain(std::move(on), path, std::move(change), std::move(how), turn, r);
    } catch (const error& e) {
        const bool of_all = e.code() == errc::not_connected || e.code() == condition::session_ended;
        if (turn && of_all) turn->let_all_go();
        throw;
    }
}

}  // namespace

asio::awaitable<modified> detail::modify_node(operations on, std::string path, node_change_function change,
                                              modify_options how) {
    if (!change) throw error(errc::invalid_argument, "modify", path, "the function is empty");
    if (is_sequential(how.create_with().mode()) || how.create_with().is_protected())
        throw error(errc::invalid_argument, "modify", path, "a sequential or protected node has a new name each time");
    commit_report r = begin_commit(commit_kind::modify);
    co_return co_await reported_commit(modify_in_turn(on, path, std::move(change), std::move(how), r), on, path,
                                       r);
}

}  // namespace zkasio
