#include "support/busy_threads.hpp"
#include "support/catch.hpp"

#include <zkasio/discovery/detail/published.hpp>

#include <atomic>
#include <memory>

using zkasio::discovery_detail::published;
using zkasio::test::busy_threads;

namespace {

std::atomic<int> twins_alive{0};

struct twin {
    explicit twin(int n) : first(n), second(n) { ++twins_alive; }
    twin(const twin&) = delete;
    twin& operator=(const twin&) = delete;
    ~twin() {
        first = -1;
        --twins_alive;
    }
    int first, second;
};

}  // namespace

TEST_CASE("published: readers see a whole value, and the old ones are freed") {
    {
        published<twin> p(std::make_unique<const twin>(0));
        std::atomic<int> wrong{0};
        busy_threads readers([&, last = 0]() mutable {
            const int seen = p.read([&](const twin& v) noexcept {
                if (v.first != v.second) ++wrong;
                return v.second;
            });
            if (seen < last) ++wrong;  // never an older one
            last = seen;
        });
        for (int n = 1; n <= 20'000; ++n) p.set(std::make_unique<const twin>(n));
        readers.end();
        CHECK(wrong == 0);
        p.set(std::make_unique<const twin>(20'001));
        CHECK(twins_alive == 1);
        CHECK(p.read([](const twin& v) noexcept { return v.first; }) == 20'001);
    }
    CHECK(twins_alive == 0);
}

TEST_CASE("published: a reader keeps what it reads and holds nobody up") {
    published<twin> p(std::make_unique<const twin>(1));
    const int seen = p.read([&](const twin& old) noexcept {
        for (int n = 2; n < 10; ++n) p.set(std::make_unique<const twin>(n));
        CHECK(twins_alive == 2);  // what is read here, and the newest
        return old.first;
    });
    CHECK(seen == 1);
}
