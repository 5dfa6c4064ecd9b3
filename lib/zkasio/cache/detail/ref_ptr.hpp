#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace zkasio::cache_detail {

/// Counts the owners of an object within the object: a std::shared_ptr would be twice as large.
class ref_counted {
public:
    ref_counted() noexcept = default;
    ref_counted(const ref_counted&) noexcept {}  // a copy has no owner yet
    ref_counted& operator=(const ref_counted&) = delete;

    void share() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
    /// Gives up one share. Returns whether that was the last owner's.
    bool leave() const noexcept {
        const std::uint32_t owners = refs_.fetch_sub(1, std::memory_order_acq_rel);
        assert(owners > 0);
        return owners == 1;
    }
    /// Whether there is only one owner, and all former owners have finished using the object.
    bool unique() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }

protected:
    ~ref_counted() = default;

private:
    mutable std::atomic<std::uint32_t> refs_{0};
};

/// Shares an object derived from ref_counted. Like std::shared_ptr: different copies may be used on different threads
/// concurrently, a single copy may not.
template <class T>
class ref_ptr {
public:
    ref_ptr() noexcept = default;
    explicit ref_ptr(T* p) noexcept : p_(p) {
        if (p_) p_->share();
    }
    ref_ptr(const ref_ptr& other) noexcept : ref_ptr(other.p_) {}
    ref_ptr(ref_ptr&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    ref_ptr& operator=(ref_ptr other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~ref_ptr() {
        if (p_ && p_->leave()) delete p_;
    }

    T* get() const noexcept { return p_; }
    T& operator*() const noexcept { return *get_existing(); }
    T* operator->() const noexcept { return get_existing(); }
    explicit operator bool() const noexcept { return p_ != nullptr; }
    friend bool operator==(const ref_ptr&, const ref_ptr&) noexcept = default;

private:
    T* get_existing() const noexcept {
        assert(p_);
        return p_;
    }

    T* p_ = nullptr;
};

template <class T, class... Args>
ref_ptr<T> make_ref(Args&&... args) {
    return ref_ptr<T>(new T(std::forward<Args>(args)...));
}

/// The object, copied first if it has other owners: other owners never see a change.
template <class T>
T& own(ref_ptr<T>& p) {
    if (!p->unique()) p = make_ref<T>(*p);
    return *p;
}

}  // namespace zkasio::cache_detail
