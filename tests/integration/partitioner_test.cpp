#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

namespace partitioner_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

using names = std::vector<std::string>;

names named_so(const std::string& text) {  // no list in braces: see coroutine_safety.hpp
    std::istringstream in(text);
    return names(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
}

asio::awaitable<void> until_cancelled() {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

// Who works on what, and how often somebody has begun to. Never two at a time.
class work_book {
public:
    asio::awaitable<void> work(held_partition& partition, std::string who) {
        CHECK(partition.held());
        if (!leases_break) CHECK(workers_[partition.name()].empty());
        CHECK(partition.token() > tokens_[partition.name()]);
        tokens_[partition.name()] = partition.token();
        workers_[partition.name()] = who;
        ++begun_[who + ":" + partition.name()];
        const std::error_code ended = co_await code_of(until_cancelled());
        workers_[partition.name()].clear();
        if (ended) throw std::system_error(ended);
    }
    // A session that another client ends is over before its lease: then only the tokens tell who was later.
    bool leases_break = false;

    int begun(const std::string& who_and_partition) const {
        const auto found = begun_.find(who_and_partition);
        return found == begun_.end() ? 0 : found->second;
    }

private:
    std::map<std::string, std::string> workers_;
    std::map<std::string, fencing_token> tokens_;
    std::map<std::string, int> begun_;
};

// Who gets what is known beforehand.
partitioner_options named(std::string id) {
    return partitioner_options().id(std::move(id)).settle(20ms).assignment(&assign_in_turn);
}

// A partitioner that runs.
class worker {
public:
    worker(asio::any_io_executor executor, partitioner p, work_book& book)
        : partitioner_(std::move(p)), running_(executor, run(partitioner_, book)) {}

    const partitioner& work() const { return partitioner_; }
    void cancel() { running_.cancel(); }
    asio::awaitable<std::error_code> code() const { return running_.code(); }
    asio::awaitable<void> until_owns(names wanted) const {
        auto reached = [&]() -> asio::awaitable<bool> {
            co_return partitioner_.owned() == wanted && partitioner_.state() == partitioner_state::acquired;
        };
        co_await eventually(reached);
    }

private:
    static asio::awaitable<void> run(partitioner p, work_book& book) {
        const std::string who = p.id();
        auto body = [&](held_partition& partition) { return book.work(partition, who); };
        co_await p.run(body);
    }
    partitioner partitioner_;
    running running_;
};

asio::awaitable<void> nobody_left(client zk, std::string dir) {
    const names party = co_await children_of(zk, dir + "/party");
    CHECK(party.empty());
    const names locks = co_await children_of(zk, dir + "/locks");
    for (const std::string& name : locks) {
        const names queue = co_await children_of(zk, dir + "/locks/" + name);
        CHECK(queue.empty());
    }
}

}  // namespace

TEST_CASE("partitioner: members share the work and only what moves is given up") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        work_book book;
        worker a(executor, partitioner(zk, dir + "/work", named_so("p3 p0 p1 p2"), named("a")), book);
        co_await a.until_owns(named_so("p0 p1 p2 p3"));
        worker b(executor, partitioner(second, dir + "/work", named_so("p0 p1 p2 p3"), named("b")), book);
        co_await b.until_owns(named_so("p1 p3"));
        co_await a.until_owns(named_so("p0 p2"));
        CHECK(book.begun("a:p0") == 1);
        CHECK(book.begun("a:p2") == 1);
        CHECK(book.begun("b:p1") == 1);
        a.cancel();
        const std::error_code cancelled = co_await a.code();
        CHECK(cancelled == asio::error::operation_aborted);
        CHECK(a.work().state() == partitioner_state::idle);
        co_await b.until_owns(named_so("p0 p1 p2 p3"));
        CHECK(book.begun("b:p1") == 1);
        CHECK(book.begun("b:p0") == 1);
        b.cancel();
        co_await b.code();
        co_await zk.idle();
        co_await second.idle();
        co_await nobody_left(zk, dir + "/work");
        co_await until_quiet(zk, dir);
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("partitioner: goes on in the next session") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-expiry");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        work_book book;
        book.leases_break = true;
        const names all = named_so("p0 p1 p2");
        worker a(executor, partitioner(zk, dir, all, named("a")), book);
        worker b(executor, partitioner(victim, dir, all, named("b")), book);
        co_await a.until_owns(named_so("p0 p2"));
        co_await b.until_owns(named_so("p1"));
        for (int i = 1; i <= 3; ++i) {
            const int before = book.begun("b:p1");
            co_await expire_session(victim);
            auto works_again = [&]() -> asio::awaitable<bool> { co_return book.begun("b:p1") > before; };
            co_await eventually(works_again);
            co_await a.until_owns(named_so("p0 p2"));
            co_await b.until_owns(named_so("p1"));
        }
        CHECK(book.begun("a:p0") == 1);
        a.cancel();
        b.cancel();
        co_await a.code();
        co_await b.code();
        co_await victim.idle();
        co_await zk.idle();
        co_await nobody_left(zk, dir);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("partitioner: operators delete members and locks and directories and it heals") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-operator");
        const auto executor = co_await asio::this_coro::executor;
        work_book book;
        worker a(executor, partitioner(zk, dir + "/work", named_so("p0 p1"), named("a")), book);
        co_await a.until_owns(named_so("p0 p1"));
        co_await zk.remove_recursive(dir + "/work/locks/p0");
        auto twice = [&]() -> asio::awaitable<bool> { co_return book.begun("a:p0") == 2; };
        co_await eventually(twice);
        CHECK(book.begun("a:p1") == 1);
        co_await zk.remove_recursive(dir + "/work");
        auto again = [&]() -> asio::awaitable<bool> {
            const names party = co_await children_of(zk, dir + "/work/party");
            co_return party.size() == 1 && book.begun("a:p0") == 3 && book.begun("a:p1") == 2;
        };
        co_await eventually(again);
        co_await a.until_owns(named_so("p0 p1"));
        a.cancel();
        co_await a.code();
        co_await zk.idle();
        co_await nobody_left(zk, dir + "/work");
    };
    with_client(body);
}

TEST_CASE("partitioner: a partition moves when its body has really ended whatever that does", "[any-server]") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-stubborn");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        bool cancelled = false, may_end = false;
        const partitioner slow(zk, dir, named_so("p0 p1"), named("a"));
        auto stubborn = [&](held_partition& partition) -> asio::awaitable<void> {
            if (partition.name() == "p0") co_return;
            const std::error_code ended = co_await code_of(until_cancelled());
            cancelled = ended == condition::cancelled;
            // From here on it cannot be cancelled, and it does not tell that it was.
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            auto allowed = [&]() -> asio::awaitable<bool> { co_return may_end; };
            co_await eventually(allowed);
        };
        running first(executor, slow.run(stubborn));
        auto owns_both = [&]() -> asio::awaitable<bool> { co_return slow.owned().size() == 2; };
        co_await eventually(owns_both);
        work_book book;
        worker b(executor, partitioner(second, dir, named_so("p0 p1"), named("b")), book);
        auto told = [&]() -> asio::awaitable<bool> { co_return cancelled; };
        co_await eventually(told);
        co_await turns(50);
        CHECK(slow.state() == partitioner_state::releasing);
        CHECK(b.work().owned().empty());
        may_end = true;
        co_await b.until_owns(named_so("p1"));
        CHECK(slow.owned() == named_so("p0"));  // its body has ended long ago
        first.cancel();
        const std::error_code code = co_await first.code();
        CHECK(code == asio::error::operation_aborted);
        co_await b.until_owns(named_so("p0 p1"));
        b.cancel();
        co_await b.code();
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("partitioner: a body that fails ends it and the other bodies") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-fails");
        const partitioner p(zk, dir, named_so("p0 p1"), named("a"));
        bool other_ended = false, other_began = false;
        auto fail = [&](held_partition& partition) -> asio::awaitable<void> {
            if (partition.name() == "p1") {
                other_began = true;
                const std::error_code ended = co_await code_of(until_cancelled());
                other_ended = ended == condition::cancelled;
                co_return;
            }
            auto began = [&]() -> asio::awaitable<bool> { co_return other_began; };
            co_await eventually(began);
            throw std::runtime_error("the work is wrong");
        };
        const std::string text = co_await message_of(p.run(fail));
        CHECK(text == "the work is wrong");
        CHECK(other_ended);
        CHECK(p.state() == partitioner_state::idle);
        CHECK(p.owned().empty());
        co_await zk.idle();
        co_await nobody_left(zk, dir);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("partitioner: cancelled at any moment it leaves nothing behind") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-cancel");
        const partitioner p(zk, dir, named_so("p0 p1"), partitioner_options().id("a").settle(0ms));
        int bodies = 0;
        auto attempt = [&]() -> asio::awaitable<void> {
            auto work = [&](held_partition&) -> asio::awaitable<void> {
                if (++bodies % 2 == 0) throw std::system_error(asio::error::eof);
                co_await until_cancelled();
            };
            const std::error_code ended = co_await code_of(p.run(work));
            if (ended == condition::cancelled) throw std::system_error(ended);
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        CHECK(bodies > 0);
        co_await zk.idle();
        co_await nobody_left(zk, dir);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("partitioner: a partition that comes back in a new session waits for the body of the old one") {
    const bool goes_again = GENERATE(false, true);
    auto body = [=](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-back");
        const auto executor = co_await asio::this_coro::executor;
        const test_client victim(executor, options());
        std::size_t members = 0, members_seen = 0;
        const auto alone = [&](const std::string&, const names& ids, const names& all) {
            members = ids.size();
            return members == 1 ? all : names();
        };
        const partitioner work(victim, dir, named_so("p0"), named("a").assignment(alone));
        int begun = 0, at_work = 0, most_at_work = 0;
        asio::steady_timer may_end(executor, asio::steady_timer::time_point::max());
        auto stubborn = [&](held_partition&) -> asio::awaitable<void> {
            ++begun;
            most_at_work = std::max(most_at_work, ++at_work);
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            if (begun == 1) co_await code_of(may_end.async_wait(asio::use_awaitable));
            --at_work;
        };
        running a(executor, work.run(stubborn));
        auto works = [&]() -> asio::awaitable<bool> { co_return begun == 1; };
        co_await eventually(works);
        const session old = co_await victim.current_session();
        co_await expire_session(victim);
        auto is_back = [&]() -> asio::awaitable<bool> {
            const names party = co_await children_of(zk, dir + "/party");
            if (party.size() != 1) co_return false;
            const auto node = co_await zk.exists(dir + "/party/" + party.front());
            co_return node && node->ephemeral_owner != old.id();
        };
        co_await eventually(is_back);
        auto is_divided = [&]() -> asio::awaitable<bool> { co_return members == members_seen; };

        const group party(zk, dir + "/party", group_options().names(group_names::kazoo_shallow_party));
        group_membership b = co_await party.join("b");
        members_seen = 2;
        co_await eventually(is_divided);
        co_await b.leave();
        members_seen = 1;
        co_await eventually(is_divided);
        const std::optional<node_stat> queue = co_await zk.exists(dir + "/locks/p0");
        if (goes_again) {
            b = co_await party.join("b");
            members_seen = 2;
            co_await eventually(is_divided);
        }
        for (int i = 0; i < 10; ++i) co_await victim.sync();
        CHECK(begun == 1);
        may_end.cancel();
        auto has_ended = [&]() -> asio::awaitable<bool> { co_return at_work == 0; };
        co_await eventually(has_ended);
        if (goes_again) {
            for (int i = 0; i < 10; ++i) co_await victim.sync();
            CHECK(begun == 1);
            const std::optional<node_stat> now = co_await zk.exists(dir + "/locks/p0");
            // No candidate has come. (An empty container may go.)
            if (queue && now) CHECK(now->cversion == queue->cversion);
            co_await b.leave();
        }
        auto works_again = [&]() -> asio::awaitable<bool> { co_return begun == 2; };
        co_await eventually(works_again);
        CHECK(most_at_work == 1);
        a.cancel();
        co_await a.end();
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("partitioner: refuses what makes no sense and follows an assignment of one's own") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-arguments");
        const auto executor = co_await asio::this_coro::executor;
        work_book book;
        auto last_only = [](const std::string&, const names&, const names& all) { return names(1, all.back()); };
        worker a(executor, partitioner(zk, dir, named_so("p0 p1"), named("a").assignment(last_only)), book);
        co_await a.until_owns(named_so("p1"));
        auto nothing = [](held_partition&) -> asio::awaitable<void> { co_return; };
        const std::error_code twice = co_await code_of(a.work().run(nothing));
        CHECK(twice == errc::invalid_argument);
        auto wrong = [](const std::string&, const names&, const names&) { return named_so("px"); };
        const std::string text =
            co_await message_of(partitioner(zk, dir, named_so("p0"), named("b").assignment(wrong)).run(nothing));
        CHECK(text.find("'px'") != std::string::npos);
        CHECK_THROWS_AS(partitioner(zk, dir, named_so("p0 p0")), error);
        CHECK_THROWS_AS(partitioner(zk, "/", named_so("p0")), error);
        a.cancel();
        co_await a.code();
        co_await zk.close();
        const std::error_code closed = co_await code_of(partitioner(zk, dir, named_so("p0")).run(nothing));
        CHECK(closed == errc::client_closed);
    };
    with_client(body);
}

TEST_CASE("partitioner: what a body throws as its partition is given to another member is dropped") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-thrown");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        const partitioner sensitive(zk, dir, named_so("p0 p1"), named("a"));
        int thrown = 0;
        auto complain = [&](held_partition& partition) -> asio::awaitable<void> {
            co_await code_of(until_cancelled());
            ++thrown;
            throw error(zk_errc::no_auth, "work", partition.name());
        };
        running first(executor, sensitive.run(complain));
        auto owns_both = [&]() -> asio::awaitable<bool> { co_return sensitive.owned().size() == 2; };
        co_await eventually(owns_both);
        work_book book;
        worker b(executor, partitioner(second, dir, named_so("p0 p1"), named("b")), book);
        co_await b.until_owns(named_so("p1"));
        CHECK(thrown == 1);
        CHECK_FALSE(first.ended());
        CHECK(sensitive.owned() == named_so("p0"));
        b.cancel();
        co_await b.code();
        co_await eventually(owns_both);
        first.cancel();
        co_await first.end();
        co_await second.close();
    };
    with_client(body);
}

TEST_CASE("partitioner: the nodes of members and of locks have the ACL that was asked for") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "partitioner-acl");
        const acl wanted(1, acl_entry(permission::read | permission::create | permission::remove, anyone()));
        work_book book;
        const auto executor = co_await asio::this_coro::executor;
        worker a(executor, partitioner(zk, dir, named_so("p0"), named("a").acl(wanted)), book);
        co_await a.until_owns(named_so("p0"));
        const names parents = named_so("party locks/p0");
        for (const std::string& parent : parents) {
            const names children = co_await children_of(zk, dir + "/" + parent);
            REQUIRE(children.size() == 1);
            const operations::acl_and_stat found = co_await zk.get_acl(dir + "/" + parent + "/" + children.front());
            CHECK(found.acl == wanted);
        }
        a.cancel();
        co_await a.code();
        co_await zk.idle();
        co_await nobody_left(zk, dir);
    };
    with_client(body);
}

}  // namespace partitioner_tests
