// What a request costs in memory once there have been some: nothing of ours.
#include "unit/membership/parts_bench.hpp"
#include "unit/support/counting_new.hpp"

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

#ifdef ZKASIO_TEST_COUNTS_NEW

namespace {

class asked_and_answered {
public:
    asked_and_answered() {
        b_.connect();
        b_.backend.submitted.reserve(10000);
        b_.backend.calls.reserve(10000);
        for (int i = 0; i < 2; ++i) {  // one answer on this connection is needed before any may leave at once
            usual_way(100);
            at_once(100);
        }
    }

    /// So many leave together, in one batch.
    void usual_way(int n) {
        const op_id first = next_;
        for (int i = 0; i < n; ++i) b_.requests.submit(next_++, getting(), to());
        b_.requests.flush();
        for (op_id id = first; id < next_; ++id) b_.requests.answered(id, reply());
    }

    /// One after another, each in the turn that asks for it.
    void at_once(int n) {
        for (int i = 0; i < n; ++i) {
            command c = getting();
            request_receiver r = to();
            REQUIRE(b_.requests.submit_at_once(next_, c, r));
            b_.requests.answered(next_++, reply());
        }
    }

    int answers() const { return answers_; }

private:
    static command getting() {
        command c(get_request{"/a", false});
        return c;
    }
    request_receiver to() {
        struct target {
            void deliver(reply&&) noexcept { ++*answers; }
            int* answers;
        };
        return request_receiver(target{&answers_});
    }

    parts_bench b_;
    op_id next_ = 1;
    int answers_ = 0;
};

}  // namespace

TEST_CASE("requests: one after another, they ask for no memory", "[requests]") {
    asked_and_answered all;
    const long before = news;
    all.at_once(1000);
    const long asked = news - before;
    CHECK(asked == 0);
    CHECK(all.answers() == 1400);
}

TEST_CASE("requests: those that were cancelled while there was no connection take no memory", "[requests]") {
    parts_bench b;
    int answers = 0;
    const auto ask = [&] {
        struct target {
            void deliver(reply&&) noexcept { ++*answers; }
            int* answers;
        };
        const op_id id = b.requests.next_id();
        command c(get_request{"/a", false});
        b.requests.submit(id, std::move(c), request_receiver(target{&answers}));
        return id;
    };
    ask();  // waits for longer than the others
    const long before = news - deletes;
    for (int i = 0; i < 100'000; ++i) b.requests.cancel(ask());
    CHECK(news - deletes - before < 500);
    CHECK(answers == 100'000);
}

TEST_CASE("requests: many at a time, they ask for no memory", "[requests]") {
    asked_and_answered all;
    const int at_a_time = GENERATE(2, 50);
    const long before = news;
    for (int i = 0; i < 1000 / at_a_time; ++i) all.usual_way(at_a_time);
    const long asked = news - before;
    CHECK(asked == 0);
    CHECK(all.answers() == 1400);
}

#endif
