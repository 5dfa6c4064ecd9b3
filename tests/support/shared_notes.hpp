#pragma once

#include <sys/mman.h>

#include <new>

namespace zkasio::test {

/// A `Notes` in memory that processes share which this one forks afterwards; its members are atomics. Zero at first.
template <class Notes>
class shared_notes {
public:
    shared_notes()
        : memory_(::mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          notes_(new (memory_) Notes{}) {}
    ~shared_notes() { ::munmap(memory_, sizeof(Notes)); }
    shared_notes(const shared_notes&) = delete;
    shared_notes& operator=(const shared_notes&) = delete;
    Notes* operator->() const { return notes_; }
    Notes& operator*() const { return *notes_; }

private:
    void* memory_;
    Notes* notes_;
};

}  // namespace zkasio::test
