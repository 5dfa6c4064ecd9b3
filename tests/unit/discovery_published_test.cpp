#include "support/catch.hpp"

#include <zkasio/discovery/detail/published.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using zkasio::discovery_detail::published;

namespace {

std::atomic<int> alive{0};

struct value {
    explicit value(int n) : first(n), second(n) { ++alive; }
    value(const value&) = delete;
    value& operator=(const value&) = delete;
    ~value() {
        first = -1;
        --alive;
    }
    int first, second;
};

}  // namespace

TEST_CASE("published: readers see a whole value, and the old ones are freed") {
    {
        published<value> p(std::make_unique<const value>(0));
        std::atomic<bool> stop{false};
        std::atomic<int> wrong{0};
        std::vector<std::thread> readers;
        for (int i = 0; i < 3; ++i)
            readers.emplace_back([&] {
                int last = 0;
                while (!stop) {
                    const int seen = p.read([&](const value& v) noexcept {
                        if (v.first != v.second) ++wrong;
                        return v.second;
                    });
                    if (seen < last) ++wrong;  // never an older one
                    last = seen;
                }
            });
        for (int n = 1; n <= 20'000; ++n) p.set(std::make_unique<const value>(n));
        stop = true;
        for (std::thread& reader : readers) reader.join();
        CHECK(wrong == 0);
        p.set(std::make_unique<const value>(20'001));
        CHECK(alive == 1);
        CHECK(p.read([](const value& v) noexcept { return v.first; }) == 20'001);
    }
    CHECK(alive == 0);
}

TEST_CASE("published: a reader keeps what it reads and holds nobody up") {
    published<value> p(std::make_unique<const value>(1));
    const int seen = p.read([&](const value& old) noexcept {
        for (int n = 2; n < 10; ++n) p.set(std::make_unique<const value>(n));
        CHECK(alive == 2);  // what is read here, and the newest
        return old.first;
    });
    CHECK(seen == 1);
}
