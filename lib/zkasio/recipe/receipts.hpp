#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zkasio {

/// A transaction that was applied.
struct committed {
    /// The result of each step. If the answer was lost: without stats, and without the paths of sequential nodes (such
    /// a node has the czxid `zxid`).
    std::vector<step_result> results;
    bool answer_lost = false;  ///< the receipt told that the transaction had been applied
    std::int64_t zxid = 0;     ///< of the transaction: czxid, mzxid and pzxid of what the transaction changed
    std::chrono::system_clock::time_point at;  ///< by the servers' clock
};

/// Transactions that are applied exactly once, also if answers are lost. For writers of recipes.
///
/// A receipt is an ephemeral node of this session, `<directory>/_r-<uuid>`. Each transaction also writes its receipt,
/// under the condition that the receipt has the version of the last transaction that was applied: a transaction that is
/// sent again cannot be applied again, and the receipt tells whether the first attempt was. Costs one step of the
/// transaction. A receipt serves one transaction at a time. All objects of a session that name the same directory and
/// ACL share at most 64 receipts, or as many as client_options::ephemeral_budget() has room for; further transactions
/// wait, and begin in the order of their calls. Without room for a single one, they fail. The receipts stay until the
/// session ends: of the directories that no object names any more, those of the 64 that were used last. With
/// missing_parents::fail, the receipts are removed in the background when the last such object is gone.
///
/// On any threads. Copies share what they are made of. A moved-from object fails with errc::invalid_argument.
class ZKASIO_EXPORT receipts {
public:
    /// @param entries the ACL of the receipts: a client that may write or remove a receipt can make the outcome of a
    /// lost answer unknown. @param when_missing how `directory` is created when it is missing. With
    /// missing_parents::fail, apply() fails with zk_errc::no_node and the path of a receipt, also if a receipt that
    /// was there before is gone: the directory may have been re-created. Else a receipt that is gone is replaced.
    /// Throws errc::invalid_path, and errc::invalid_argument for a session that was moved from.
    receipts(session on, std::string directory, acl entries = default_acl(),
             missing_parents when_missing = missing_parents::create_container);

    /// *Completes when* `steps` were applied. An outage that the session survives ends nothing: an attempt whose
    /// outcome is unknown is repeated.
    /// *Fails with* the code of the step that was refused: nothing was applied. errc::session_expired,
    /// errc::client_closed and all other errors: error::outcome_unknown() tells whether the steps may have been
    /// applied; zk_errc::connection_loss: error::hung_up(), or the receipt was lost as well, to an operator.
    /// *Cancellation*: see error::outcome_unknown(). @param operation the name in messages.
    asio::awaitable<committed> apply(transaction steps, std::string operation = "apply") const;

private:
    struct state;
    static asio::awaitable<committed> applied(std::shared_ptr<state> s, transaction steps, std::string operation);

    std::shared_ptr<state> state_;
};

}  // namespace zkasio
