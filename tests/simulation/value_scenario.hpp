#pragma once

#include "simulation/simulation.hpp"
#include "simulation/value_history.hpp"

#include "support/test_client.hpp"

#include <zkasio/config/config_value.hpp>
#include <zkasio/modify.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace zkasio::test {

struct value_faults {
    bool drops = false, expiries = false, stops = false;
    bool cancellations = false;
    bool operator_writes = false;            ///< the same data, and nonsense for a while
    bool operator_deletes_receipts = false;
    int throttled = 0;                       ///< percent of the requests
};

/// Clients change one node with modify() and config_value, in all ways, and follow it with config_value.
class value_scenario {
public:
    value_scenario(simulation& s, const value_faults& f);
    ~value_scenario();

    void run_at_random();

private:
    using value = config_value<std::string>;
    enum class way { certain_modify, plain_modify, update, set_version };
    /// What a writer is told.
    struct outcome {
        bool written = false;
        std::int32_t version = 0;
        std::optional<std::int64_t> zxid;
        std::error_code code;
        bool unknown = false, is_bad = false;  // is_bad: the data could not be read
        std::string what;
    };
    struct reader {
        explicit reader(int c) : client(c) {}
        const int client;
        std::optional<value> follows;
        std::optional<running> reads;
        std::size_t seen = 0, told = 0;  // numbers of states: by snapshot(), by changes()
        std::optional<config_snapshot<std::string>> last;
        bool ready = false;
    };

    int some_client() { return static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients()))); }
    value value_of(int client) const;

    asio::awaitable<void> write(std::size_t rounds);
    asio::awaitable<void> change(int client, way how, std::string id, std::shared_ptr<outcome> o);
    asio::awaitable<void> modify_once(int client, bool certain, std::string id, std::shared_ptr<outcome> o);
    asio::awaitable<void> update_once(int client, std::string id, std::shared_ptr<outcome> o);
    asio::awaitable<void> set_once(int client, std::string id, std::shared_ptr<outcome> o);
    void told(way how, const std::string& id, const outcome& o, bool cancelled);

    void open_reader(int client);
    asio::awaitable<void> read(reader* r);
    void check_readers();
    void check_quiet();

    asio::awaitable<void> trouble(std::size_t rounds);
    asio::awaitable<void> write_nonsense();
    void delete_receipt();
    void end();

    simulation& s_;
    const value_faults faults_;
    value_history history_;
    std::list<reader> readers_;
    std::size_t working_ = 0, ids_ = 0;
};

}  // namespace zkasio::test
