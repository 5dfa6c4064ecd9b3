#include <zkasio/error.hpp>

#include <zkasio/detail/base/run_cancellable.hpp>
#include <zkasio/printable.hpp>

#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>

#include <exception>
#include <utility>

namespace zkasio {
namespace {

class zookeeper_category_impl final : public std::error_category {
    const char* name() const noexcept override { return "zookeeper"; }

    std::string message(int value) const override {
        switch (static_cast<zk_errc>(value)) {
            case zk_errc::ok: return "success";
            case zk_errc::system_error: return "system error";
            case zk_errc::runtime_inconsistency: return "replies out of step with the requests";
            case zk_errc::data_inconsistency: return "inconsistent data";
            case zk_errc::connection_loss: return "connection lost";
            case zk_errc::marshalling_error: return "request could not be encoded, or its answer not decoded";
            case zk_errc::unimplemented:
                return "not implemented by this server (ZooKeeper 3.5 or later is needed, and for nodes with a time to "
                       "live its setting zookeeper.extendedTypesEnabled)";
            case zk_errc::operation_timeout: return "the server did not answer in time";
            case zk_errc::bad_arguments: return "bad arguments";
            case zk_errc::invalid_state: return "the session is not usable";
            case zk_errc::new_config_no_quorum: return "no quorum of the new configuration is connected";
            case zk_errc::reconfig_in_progress: return "another reconfiguration is in progress";
            case zk_errc::no_node: return "no such node";
            case zk_errc::no_auth: return "no permission";
            case zk_errc::bad_version: return "version does not match";
            case zk_errc::no_children_for_ephemerals: return "an ephemeral node cannot have children";
            case zk_errc::node_exists: return "node exists";
            case zk_errc::not_empty: return "node has children";
            case zk_errc::session_expired: return "session expired";
            case zk_errc::invalid_callback: return "invalid callback";
            case zk_errc::invalid_acl: return "invalid ACL";
            case zk_errc::auth_failed: return "authentication failed";
            case zk_errc::closing: return "connection is closing";
            case zk_errc::session_moved: return "session moved to another server";
            case zk_errc::not_read_only: return "the server is read-only";
            case zk_errc::ephemeral_on_local_session: return "ephemeral node on a local session";
            case zk_errc::no_watcher: return "no such watch";
            case zk_errc::reconfig_disabled: return "reconfiguration is disabled on the server";
            case zk_errc::session_requires_sasl:
                return "the server requires authentication (by a scheme of its setting enforce.auth.schemes, or SASL)";
            case zk_errc::quota_exceeded: return "quota exceeded";
            case zk_errc::throttled: return "throttled by the server, not executed";
        }
        return "ZooKeeper error " + std::to_string(value);
    }
};

class zkasio_category_impl final : public std::error_category {
    const char* name() const noexcept override { return "zkasio"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::session_expired: return "session expired";
            case errc::client_closed: return "client closed";
            case errc::not_connected: return "not connected";
            case errc::lock_lost: return "lock lost";
            case errc::lock_released: return "lock not held";
            case errc::invalid_path: return "invalid path";
            case errc::invalid_argument: return "invalid argument";
            case errc::too_large: return "request too large";
            case errc::foreign_child: return "directory has children that are no contenders";
            case errc::would_deadlock: return "the caller holds the lock and would wait for itself";
            case errc::revoked: return "asked back, and the work under it cancelled";
            case errc::forked: return "made before fork(), so it belongs to the parent process";
            case errc::timed_out: return "timed out";
            case errc::too_many_members: return "there are as many members as may be";
            case errc::too_many_ephemerals: return "too many ephemeral nodes in one session";
        }
        return "zkasio error " + std::to_string(value);
    }
};

// The codes with which a request that was handed to the C client can end although a server may have executed it
// (c-client fact 13): the C client's own codes, except those that a server answers. Not errc::session_expired: a
// request that was never sent ends with this code, too, when the session is over.
bool may_have_been_applied(const std::error_code& code) {
    if (code.category() != zookeeper_category()) return false;
    if (code == zk_errc::unimplemented || code == zk_errc::bad_arguments || code == zk_errc::new_config_no_quorum ||
        code == zk_errc::reconfig_in_progress)
        return false;
    const int v = code.value();
    return (v <= -1 && v >= -15) || code == zk_errc::closing || code == zk_errc::session_expired ||
           code == zk_errc::auth_failed;
}

class condition_category_impl final : public std::error_category {
    const char* name() const noexcept override { return "zkasio.condition"; }

    std::string message(int value) const override {
        switch (static_cast<condition>(value)) {
            case condition::retryable: return "may succeed when retried";
            case condition::outcome_unknown: return "may or may not have been applied";
            case condition::session_ended: return "session ended";
            case condition::cancelled: return "cancelled";
        }
        return "unknown condition";
    }

    bool equivalent(const std::error_code& code, int value) const noexcept override {
        switch (static_cast<condition>(value)) {
            case condition::retryable:
                return code == zk_errc::connection_loss || code == zk_errc::operation_timeout ||
                       code == zk_errc::runtime_inconsistency || code == zk_errc::session_moved ||
                       code == zk_errc::throttled || code == zk_errc::reconfig_in_progress ||
                       code == errc::not_connected;
            case condition::outcome_unknown: return may_have_been_applied(code);
            case condition::session_ended:
                return code == errc::session_expired || code == errc::client_closed || code == errc::forked ||
                       code == zk_errc::session_expired || code == zk_errc::auth_failed ||
                       code == zk_errc::closing || code == zk_errc::session_requires_sasl;
            case condition::cancelled: return code == asio::error::operation_aborted;
        }
        return false;
    }
};

std::string compose(const std::error_code& code, std::string_view operation, std::string_view path,
                    std::string_view hint, bool outcome_unknown) {
    std::string what(operation);
    if (!path.empty()) {
        what += ' ';
        what += printable(path);
    }
    what += ": ";
    const std::string reason = code == asio::error::operation_aborted ? "cancelled" : code.message();
    what += reason;
    if (!hint.empty() && hint != reason) {
        what += " (";
        what += printable(hint);
        what += ')';
    }
    if (outcome_unknown) what += "; it may or may not have been applied";
    return what;
}

}  // namespace

namespace {

// The categories are made at compile time and never destroyed: codes are compared in the destructors of statics, too,
// and every category exists at any time.
template <class Category>
union immortal {
    constexpr immortal() : category() {}
    ~immortal() {}
    Category category;
};
constinit const immortal<zookeeper_category_impl> zookeeper_instance;
constinit const immortal<zkasio_category_impl> zkasio_instance;
constinit const immortal<condition_category_impl> condition_instance;

}  // namespace

const std::error_category& zookeeper_category() noexcept { return zookeeper_instance.category; }
const std::error_category& zkasio_category() noexcept { return zkasio_instance.category; }
const std::error_category& condition_category() noexcept { return condition_instance.category; }

namespace {

bool nested_leaves_outcome_unknown(const std::exception& e) noexcept {
    const auto* const outer = dynamic_cast<const std::nested_exception*>(&e);
    return outer && leaves_outcome_unknown(outer->nested_ptr());
}

}  // namespace

error::error(std::error_code code, std::string_view operation, std::string_view path, std::string_view hint,
             bool outcome_unknown)
    : std::system_error(code),
      text_(std::make_shared<const text>(text{std::string(operation), std::string(path), std::string(hint),
                                              compose(code, operation, path, hint, outcome_unknown)})),
      outcome_unknown_(outcome_unknown) {}

error& error::is_of(std::size_t bytes) {
    if (bytes == 0) return *this;
    text with_bytes = *text_;
    with_bytes.bytes = bytes;
    text_ = std::make_shared<const text>(std::move(with_bytes));
    return *this;
}

error error::hung_up_at(std::string_view operation, std::string_view path, std::size_t bytes, bool outcome_unknown) {
    error e(zk_errc::connection_loss, operation, path,
            "each of 5 connections ended with this request of " + std::to_string(bytes) + " bytes" +
                (outcome_unknown ? "" : ", which was not applied") +
                ": is it larger than the servers' jute.maxbuffer, or a request that they do not know?",
            outcome_unknown);
    return e.is_of(bytes);
}

error error::not_applied() const {
    if (hung_up()) return hung_up_at(operation(), path(), text_->bytes, false);
    return {code(), operation(), path(), hint()};
}

error error::renamed(std::string_view operation, std::string_view path) const {
    return error(code(), operation, path, hint(), outcome_unknown_).is_of(text_->bytes);
}

bool leaves_outcome_unknown(const std::exception_ptr& thrown) noexcept {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const error& e) {
        return e.outcome_unknown() || nested_leaves_outcome_unknown(e);
    } catch (const asio::multiple_exceptions&) {  // the second exception is not seen
        return true;
    } catch (const std::exception& e) {
        return nested_leaves_outcome_unknown(e);
    } catch (...) {
    }
    return false;
}

error with_outcome_unknown(const error& e, std::string_view hint) {
    const bool says_more = !e.hint().empty() && e.hint() != e.code().message();
    const std::string before = says_more ? e.hint() + "; " : std::string();
    return error(e.code(), e.operation(), e.path(), before + std::string(hint), true);
}

void throw_with_body_failure(error e, std::exception_ptr body) {
    if (!e.outcome_unknown() && leaves_outcome_unknown(body))
        e = with_outcome_unknown(e, "a write of the body was under way");
    if (!body || detail::is_cancellation(body)) throw std::move(e);
    try {
        std::rethrow_exception(std::move(body));
    } catch (...) {
        std::throw_with_nested(std::move(e));
    }
}

void rethrow_as(std::string_view operation, std::string_view path) {
    try {
        throw;
    } catch (const error& e) {
        const bool is_about_all = e.path().empty() || e.code() == condition::cancelled ||
                                  e.code() == condition::session_ended || e.code() == errc::not_connected ||
                                  e.code() == errc::timed_out;
        throw e.renamed(operation, is_about_all ? path : std::string_view(e.path()));
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
        throw error(e.code(), operation, path);
    }
}

}  // namespace zkasio

namespace zkasio::detail {

std::exception_ptr of_unknown_outcome(std::exception_ptr cancellation) {
    constexpr const char* why = "the other operation of && or || may have been a write";
    try {
        std::rethrow_exception(cancellation);
    } catch (const error& e) {
        if (e.outcome_unknown()) return cancellation;
        return std::make_exception_ptr(with_outcome_unknown(e, why));
    } catch (const std::system_error& e) {  // of a timer
        return std::make_exception_ptr(error(e.code(), "wait", {}, why, true));
    }
}

}  // namespace zkasio::detail
