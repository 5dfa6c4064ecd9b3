#include "unit/support/counting_new.hpp"

#ifdef ZKASIO_TEST_COUNTS_NEW

#include <cstdlib>
#include <limits>
#include <new>

namespace zkasio::test {

std::atomic<long> refused_from{std::numeric_limits<long>::max()};
std::atomic<long> news{0}, deletes{0};
thread_local long news_until_refusal = -1;

}  // namespace zkasio::test

void* operator new(std::size_t size) {
    const long number = zkasio::test::news.fetch_add(1, std::memory_order_relaxed);
    if (number >= zkasio::test::refused_from.load(std::memory_order_relaxed)) throw std::bad_alloc();
    if (long& left = zkasio::test::news_until_refusal; left >= 0 && left-- == 0) throw std::bad_alloc();
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    if (memory) zkasio::test::deletes.fetch_add(1, std::memory_order_relaxed);
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

#endif
