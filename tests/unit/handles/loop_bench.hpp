#pragma once

#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/session_loop.hpp>

#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace zkasio::test {

/// A fake server, and bodies of a session_loop that tell what becomes of them.
class loop_bench : public rig {
public:
    using work = std::function<asio::awaitable<void>(session)>;

    explicit loop_bench(client_options o = quick_retries()) : rig(std::move(o)) {}
    static client_options quick_retries() { return rig::quick().retry(retry_policy::n_times(0, 1ms)); }

    /// Notes when `inner` begins, and how it ends.
    work noted(work inner) {
        return [this, inner = std::move(inner)](session s) { return note(std::move(s), inner); };
    }
    /// Never ends by itself.
    work waiting() {
        return noted([](session) -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        });
    }
    std::size_t count(const std::string& line) const {
        return static_cast<std::size_t>(std::count(seen.begin(), seen.end(), line));
    }
    /// *Completes when* the bodies have told so much. Fails the test when that takes too long.
    asio::awaitable<void> until_seen(std::size_t lines) {
        auto enough = [this, lines]() -> asio::awaitable<bool> { co_return seen.size() >= lines; };
        co_await eventually(enough);
    }
    bool goodbye_said() const {
        return std::find(server.log.begin(), server.log.end(), "goodbye") != server.log.end();
    }

    texts seen;  ///< "begins 4097", "returns", "cancelled", or what it has thrown

private:
    asio::awaitable<void> note(session s, work inner) {
        seen.push_back("begins " + std::to_string(s.id()));
        std::exception_ptr failed;
        try {
            co_await inner(s);
        } catch (...) {
            failed = std::current_exception();
        }
        if (!failed) {
            seen.emplace_back("returns");
            co_return;
        }
        try {
            std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            seen.push_back(e.code() == condition::cancelled ? "cancelled" : e.code().message());
        } catch (const std::exception& e) {
            seen.emplace_back(e.what());
        }
        std::rethrow_exception(failed);
    }
};

}  // namespace zkasio::test
