#include "unit/support/counting_new.hpp"

#ifdef ZKASIO_TEST_COUNTS_NEW

#include <cstdlib>
#include <new>

namespace zkasio::test {

std::atomic<long> news{0}, deletes{0};

}  // namespace zkasio::test

void* operator new(std::size_t size) {
    zkasio::test::news.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    if (memory) zkasio::test::deletes.fetch_add(1, std::memory_order_relaxed);
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

#endif
