#include <zkasio/locks/slots.hpp>

#include <zkasio/error.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/take_slot.hpp>

#include <utility>

namespace zkasio {

using namespace lock_detail;

slots_options& slots_options::quiet(any_duration d) {
    const std::chrono::nanoseconds rest = d;
    if (rest < std::chrono::nanoseconds::zero())
        throw error(errc::invalid_argument, "slots", {}, "numbers do not rest for a negative time");
    quiet_ = std::chrono::ceil<std::chrono::milliseconds>(rest);
    return *this;
}

slots::slots(client zk, std::string path, std::uint32_t n, slots_options options)
    : lockable("slots", std::move(zk), std::move(path)), n_(n), options_(std::move(options)) {
    if (n < 1 || n > most)
        throw error(errc::invalid_argument, "slots", this->path(),
                    "there are 1 to " + std::to_string(most) + " numbers, not " + std::to_string(n));
}

lock_attempt slots::attempts(acquire_options how) const {
    slot_spec spec;
    spec.path = directory();
    spec.n = n_;
    spec.data = options_.data();
    spec.entries = options_.acl();
    spec.quiet = options_.quiet();
    spec.no_owner = "no lock_owner can hold numbers: each guard has one of its own";
    return attempts_at_slot(on(), std::move(spec), std::move(how));
}

}  // namespace zkasio
