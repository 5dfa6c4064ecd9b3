#pragma once

#include "order.hpp"
#include "sqlite.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace order_server {

/// The orders, in a file that all instances share: what the locks protect.
///
/// It does not trust the locks. An instance that was stopped for longer than its session still takes a lock for its own
/// that somebody else has by now. So each order keeps the largest fencing token that it was ever read with for a
/// payment, its fence, and each statement checks it: reading raises the fence, and then whoever has read with a smaller
/// token cannot write any more. (A check only when writing is not enough: the old holder may come between the new one's
/// reading and writing.)
///
/// Blocks: call it on a thread that may. One thread at a time; see blocking_pool.
class order_store {
public:
    /// @param file created when it is missing.
    explicit order_store(const std::string& file);

    /// False when there is an order of that id already, which stays as it is.
    bool add(const order& o);
    std::vector<order> all(std::int64_t limit);

    /// What begin_payment() has found.
    struct reading {
        enum class result { read, no_such_order, fenced } is = result::fenced;
        order what;  ///< if it was read
    };
    /// Reads the order for a payment, and fences off all smaller tokens.
    reading begin_payment(const std::string& id, std::int64_t token);
    /// Writes what was decided on what begin_payment() has read with this token. False: somebody has read the order
    /// with a larger one since, and nothing was written.
    bool finish_payment(const std::string& id, std::int64_t token, std::string_view instance, cents amount);

    /// Settles at most so many orders that are paid; how many it were, and nothing when somebody with a larger token
    /// has settled before.
    std::optional<int> settle(std::int64_t token, std::int64_t at_most);

    /// How many payments were taken in all, and how many orders were paid more than once.
    struct books {
        std::int64_t payments = 0, paid_twice = 0;
    };
    books audit();

private:
    database db_;
};

}  // namespace order_server
