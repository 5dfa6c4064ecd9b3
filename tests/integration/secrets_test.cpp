#include "support/fault_proxy.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"
#include "support/texts.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/log_record.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

/// All that a client tells its program in words.
struct words {
    std::vector<std::string> texts;

    void add(const std::string& text) { texts.push_back(text); }
    void add(const log_record& r) {
        add(r.text());
        for (const log_field& f : r.fields()) add(f.value);
    }
    void add(const recording_observer& seen) {
        for (const operation_report& r : seen.operations) {
            add(std::string(r.operation));
            add(r.path);
        }
        for (const session_event& e : seen.sessions) add(e.reason);
        for (const lock_wait_report& r : seen.waits) add(r.path);
        for (const lock_hold_report& r : seen.holds) add(r.path);
    }
    bool tell(const std::string& secret) const {
        return std::any_of(texts.begin(), texts.end(),
                           [&](const std::string& text) { return text.find(secret) != text.npos; });
    }
};

}  // namespace

TEST_CASE("secrets: no log, report or error shows a credential, a session's password or the data of a node", "[leaves]") {
    words said;
    const auto observer = std::make_shared<recording_observer>();
    fault_proxy proxy(shared_servers());
    std::string password;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "secrets");
        co_await zk.add_auth("digest", "bob:second-s3cret");
        create_options mine;
        mine.acl(creator_all_acl());
        co_await zk.create(dir + "/mine", "data-s3cret", mine);
        const session_credentials ours = co_await zk.credentials();
        password = ours.password();

        const test_client stranger(co_await asio::this_coro::executor, options());
        const std::string no_permission = co_await message_of(stranger.set(dir + "/mine", "data-s3cret"));
        said.add(no_permission);
        const std::string bad_version = co_await message_of(zk.set(dir + "/mine", "data-s3cret", 7));
        said.add(bad_version);
        co_await stranger.close();

        const mutex lock(zk, dir + "/lock", mutex_options().data("data-s3cret"));
        {
            const lock_guard guard = co_await lock.acquire();
            proxy.cut_all();
            co_await zk.sync(dir);  // on the next connection, with the credentials
        }
        co_await zk.remove(dir + "/mine");
        // Servers end the connection, and the session, for a scheme that they do not have.
        const std::string refused = co_await message_of(zk.add_auth("nonsense", "third-s3cret"));
        said.add(refused);
        CHECK(has(refused, "add_auth"));
    };
    const auto sink = [&](const log_record& r) { said.add(r); };
    with_client(options(proxy.address())
                    .auth("digest", "ann:first-s3cret")
                    .log(sink, log_level::debug)
                    .observer(observer, observer->where.get_executor()),
                body);
    observer->look();
    said.add(*observer);
    CHECK(said.texts.size() > 20);
    REQUIRE(password.size() == 16);
    for (const std::string& secret : {std::string("s3cret"), password}) CHECK_FALSE(said.tell(secret));
    CHECK(said.tell("connected"));  // what is said is looked at
}
